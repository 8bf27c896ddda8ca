"""Options of the test run."""


def pytest_addoption(parser):
    parser.addoption(
        "--browser-required", action="store_true", help="fail, rather than skip, where there is no Chromium"
    )
