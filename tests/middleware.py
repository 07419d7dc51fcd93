"""The strictest policy that a site may have: scripts, styles and pictures from files of its own and nothing else."""


class ContentSecurityPolicy:
    def __init__(self, get_response):
        self.get_response = get_response

    def __call__(self, request):
        response = self.get_response(request)
        response["Content-Security-Policy"] = "default-src 'self'; frame-ancestors 'none'"
        return response
