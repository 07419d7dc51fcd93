"""What all pages share: they only read, belong to a model's admin, and know who looks.

Guarantees: nothing is written through the ORM's forms (no add, change or delete view exists); a page answers GET and
an action POST with a CSRF token only; both are refused with 403 without their right.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import render
from django.urls import URLPattern, path
from django.utils.translation import gettext_lazy as _

from .navigation import navigation
from .rights import may
from .viewer import viewer_zone, zone_label

View = Callable[..., HttpResponse]
SAFE = ("GET", "HEAD")


class JobsAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """A model's admin without forms. ``pages()`` gives its URLs; subclass it to change or add some."""

    show_full_result_count = False

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """By its own permission alone: to change is not to see."""
        return may(request, f"view_{self.opts.model_name}")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def get_urls(self) -> list[URLPattern]:
        return self.pages()

    def pages(self) -> list[URLPattern]:
        return [self.page("", self.list_page, "changelist")]

    def list_page(self, request: HttpRequest) -> HttpResponse:
        raise NotImplementedError(f"{type(self).__name__} has to say what its list page shows.")

    def page(self, route: str, view: View, name: str) -> URLPattern:
        """A page to look at: whoever may view this model."""
        return self._url(route, view, name, SAFE, self.has_view_permission)

    def action(self, route: str, view: View, name: str, right: str) -> URLPattern:
        """Something to do, by POST: whoever may view this model and has the right."""

        def allowed(request: HttpRequest) -> bool:
            return self.has_view_permission(request) and may(request, right)

        return self._url(route, view, name, ("POST",), allowed)

    def post(self, route: str, view: View, name: str) -> URLPattern:
        """Something to do, by POST, whose right depends on what it is about: ``view`` has to check it."""
        return self._url(route, view, name, ("POST",), self.has_view_permission)

    def _url(
        self, route: str, view: View, name: str, methods: tuple[str, ...], allowed: Callable[[HttpRequest], bool]
    ) -> URLPattern:
        @wraps(view)
        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            if request.method not in methods:
                return HttpResponseNotAllowed(methods)
            if not allowed(request):
                raise PermissionDenied
            request.current_app = self.admin_site.name
            with viewer_zone(request):
                return view(request, *args, **kwargs)

        return path(route, self.admin_site.admin_view(guarded), name=f"django_jobs_{self.opts.model_name}_{name}")

    def show(self, request: HttpRequest, template: str, title: object, **context: Any) -> HttpResponse:
        """Render ``admin/django_jobs/<template>.html`` here and now, while the viewer's zone is active."""
        tabs = navigation(self.admin_site, request)
        shared = {
            **self.admin_site.each_context(request),
            "title": title,
            "opts": self.opts,
            "app_title": _("Jobs"),
            "tabs": tabs,
            "sees": {tab.model: True for tab in tabs},
            "zone": zone_label(),
            "current": f"{self.opts.model_name}_changelist",
        }
        return render(request, f"admin/django_jobs/{template}.html", shared | context)
