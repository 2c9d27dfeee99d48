"""Variables of a command in a trial: caches that last for the project, and programs that do not wait for a network."""

from collections.abc import Container, Mapping

from tui_agent.walls.visible_places import own_home

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
    "COMPOSER_DISABLE_NETWORK": "1",
    "HF_HUB_OFFLINE": "1",
    "HOMEBREW_NO_AUTO_UPDATE": "1",
}
"""Variables with which programs fail at once instead of trying a network for a minute."""


def trial_environment(
    environment: Mapping[str, str], shown: Container[str], *, cache: str, temporary: str, network: bool
) -> dict[str, str]:
    """Return the environment of a command in a trial.

    Args:
        environment: that of a confined command.
        shown: the paths of the system and the home that the command sees.
        cache: the project's cache, as the command sees it.
        temporary: the session's temporary directory, as the command sees it.
        network: True if the command may use the network.
    """
    # A layer is a file system of its own, and the repository may be around it.
    changed = {"GIT_DISCOVERY_ACROSS_FILESYSTEM": "1", "TMPDIR": temporary}
    changed |= {name: f"{cache}/{directory}" for name, directory in _CACHES.items()}
    if (packages := str(own_home() / ".gradle/caches")) in shown:
        changed["GRADLE_RO_DEP_CACHE"] = packages
    if not network:
        changed |= _OFFLINE
        changed["MAVEN_ARGS"] = f"{environment.get('MAVEN_ARGS', '')} -o".strip()
    return {**environment, **changed}
