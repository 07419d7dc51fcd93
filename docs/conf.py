from importlib.metadata import version as installed_version

project = "django-durable-jobs"
author = copyright = "django-durable-jobs contributors"
release = version = installed_version("django-durable-jobs")

extensions = ["myst_parser"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
nitpicky = True

html_theme = "furo"
html_title = f"django-durable-jobs {release}"
