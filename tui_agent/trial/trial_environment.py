"""Variables of a command in a trial: caches that last for the project, and programs that do not wait for a network."""

from collections.abc import Mapping

_CACHES = {
    "XDG_CACHE_HOME": "xdg",
    "PYTHONPYCACHEPREFIX": "pycache",
    "MYPY_CACHE_DIR": "mypy",
    "RUFF_CACHE_DIR": "ruff",
    "HYPOTHESIS_STORAGE_DIRECTORY": "hypothesis",
    "PIP_CACHE_DIR": "pip",
    "UV_CACHE_DIR": "uv",
    "PRE_COMMIT_HOME": "pre-commit",
    "GOCACHE": "go-build",
    "CCACHE_DIR": "ccache",
    "SCCACHE_DIR": "sccache",
    "GRADLE_USER_HOME": "gradle",
    "npm_config_cache": "npm",
    "YARN_CACHE_FOLDER": "yarn",
    "MPLCONFIGDIR": "matplotlib",
    "NUGET_HTTP_CACHE_PATH": "nuget",
}
"""Variables that name caches, and their directories in the project's cache. Stores of packages such as `GOMODCACHE`,
`CARGO_HOME` and `~/.m2` stay the user's: without a network, a new one would only be empty."""

_OFFLINE = {
    "npm_config_offline": "true",
    "npm_config_audit": "false",
    "npm_config_fund": "false",
    "npm_config_update_notifier": "false",
    "YARN_ENABLE_NETWORK": "0",
    "COREPACK_ENABLE_NETWORK": "0",
    "PIP_NO_INDEX": "1",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "UV_OFFLINE": "1",
    "CARGO_NET_OFFLINE": "true",
    "GOPROXY": "off",
    "GOTOOLCHAIN": "local",
    "MAVEN_ARGS": "-o",
    "COMPOSER_DISABLE_NETWORK": "1",
    "HF_HUB_OFFLINE": "1",
    "HOMEBREW_NO_AUTO_UPDATE": "1",
}
"""Variables with which programs fail at once instead of trying a network for a minute."""


def trial_environment(
    environment: Mapping[str, str], *, cache: str, temporary: str, network: bool, gradle_home: str = ""
) -> dict[str, str]:
    """Return the environment of a command in a trial.

    Args:
        environment: that of a confined command.
        cache: the project's cache, as the command sees it.
        temporary: the session's temporary directory, as the command sees it.
        network: True if the command may use the network.
        gradle_home: directory with the packages that Gradle may read; empty: there is none.
    """
    caches = {name: f"{cache}/{directory}" for name, directory in _CACHES.items()}
    packages = {"GRADLE_RO_DEP_CACHE": gradle_home} if gradle_home else {}
    offline = {} if network else _OFFLINE
    maven = " ".join(filter(None, (environment.get("MAVEN_ARGS", ""), offline.get("MAVEN_ARGS", ""))))
    # A layer is a file system of its own, and the repository may be around it.
    more = {"GIT_DISCOVERY_ACROSS_FILESYSTEM": "1", "TMPDIR": temporary, **caches, **packages, **offline}
    return {**environment, **more, **({"MAVEN_ARGS": maven} if maven else {})}
