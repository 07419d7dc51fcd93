from django.apps import AppConfig


class BenchmarksConfig(AppConfig):
    name = "benchmarks.app"
    label = "benchmarks_app"
