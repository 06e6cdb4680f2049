"""Where data sets come from: a folder, a checked archive, or the authors' server. Nothing is ever unpickled."""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
import tarfile
import zipfile
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from mqnet.errors import ConfigError, InputError, StoreError

ARCHIVES = (".tar", ".tar.gz", ".tgz", ".zip")


@dataclass(frozen=True)
class Remote:
    """A file on its authors' server, with the checksum they publish: 'md5:…' or 'sha256:…'."""

    url: str
    checksum: str

    @property
    def name(self) -> str:
        """The file's own name."""
        return PurePosixPath(self.url).name


def cache_folder() -> Path:
    """Where downloads, unpacked archives and decoded images are kept: `MQNET_CACHE`, else the user's cache folder."""
    named = os.environ.get("MQNET_CACHE")
    base = os.environ.get("XDG_CACHE_HOME")
    return Path(named) if named else (Path(base) if base else Path.home() / ".cache") / "mqnet"


def find(root: Path | None, download: bool, remotes: tuple[Remote, ...], dataset: str) -> Path:
    """The data set's folder or archive: `root`, or with `download` the files fetched from their authors, checked.

    In a folder that holds the archive under its authors' name, the archive is taken.
    """
    if root is not None:
        if not root.exists():
            raise InputError(f"the data set '{dataset}' is not at '{root}': there is no such folder or archive.")
        archive = root / remotes[0].name if len(remotes) == 1 else root
        return archive if archive.is_file() else root
    if not download or not remotes:
        wanted = f"the archive {remotes[0].name} or the folder unpacked from it" if remotes else "its folder"
        fetching = ", or download = true to fetch it" if remotes else ""
        raise ConfigError(f"the data set '{dataset}' needs `root`: {wanted}{fetching}.")
    folder = cache_folder() / "downloads"
    files = [fetch(remote, folder / dataset) for remote in remotes]
    return files[0] if len(files) == 1 else folder / dataset


def fetch(remote: Remote, folder: Path) -> Path:
    """A remote file, downloaded into a folder unless it is there already; a wrong checksum is an error."""
    try:
        import pooch
    except ImportError as error:
        raise ConfigError(
            f"fetching {remote.name} needs pooch: `pip install 'mqnet[download]'`. Or fetch {remote.url} yourself and "
            "give its place as `root`."
        ) from error
    try:
        # the server's certificate is not what is trusted here: the checksum is
        found = pooch.retrieve(remote.url, known_hash=remote.checksum, fname=remote.name, path=folder)
    except ValueError as error:
        raise InputError(
            f"what {remote.url} sent is not {remote.name}: its checksum differs from {remote.checksum}. Try again, or "
            "fetch the file elsewhere and give its place as `root`."
        ) from error
    except Exception as error:  # the network's errors are many, each library's its own
        raise InputError(
            f"{remote.url} cannot be fetched ({type(error).__name__}). Fetch it where there is internet and give its "
            "place as `root`."
        ) from error
    return Path(found)


def verify(path: Path, checksum: str) -> None:
    """Compare a file with its checksum, 'md5:…' or 'sha256:…'."""
    kind, _, expected = checksum.partition(":")
    if kind not in ("md5", "sha256") or not expected:
        raise ConfigError(f"checksum '{checksum}' must be 'md5:…' or 'sha256:…'.")
    digest = hashlib.new(kind, usedforsecurity=False)
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    if digest.hexdigest() != expected.lower():
        raise InputError(
            f"'{path}' has the {kind} checksum {digest.hexdigest()}, but {expected.lower()} was expected: the download "
            "was cut short, or it is another file. Fetch it again, or say which checksum is right (`checksum`)."
        )


def check_archive(path: Path, checksum: str | None, remotes: tuple[Remote, ...]) -> None:
    """Check an archive against the checksum given, or against its authors' where it bears their name."""
    known = checksum or next((remote.checksum for remote in remotes if remote.name == path.name), None)
    if known is not None and path.is_file():
        verify(path, known)


def read_members(
    place: Path, wanted: Collection[str], dataset: str, optional: Collection[str] = ()
) -> dict[str, bytes]:
    """The files of these names, wherever they lie in a folder or an archive, unpacked if they end in .gz as well.

    A missing one is an error that names it.
    """
    names = {*wanted, *optional}
    found: dict[str, bytes] = {}
    for name, file in _members(place, {*names, *(f"{name}.gz" for name in names)}):
        plain = name.removesuffix(".gz") if name not in names else name
        if plain not in found:
            content = file.read()
            try:
                found[plain] = content if plain == name else gzip.decompress(content)
            except (OSError, EOFError) as error:
                raise InputError(f"'{name}' in '{place}' is damaged: {error}. Fetch it again.") from error
    missing = sorted(set(wanted) - set(found))
    if missing:
        raise InputError(f"'{place}' is not the data set '{dataset}': it holds no {missing[0]}.")
    return found


def _members(place: Path, names: Collection[str]) -> Iterator[tuple[str, IO[bytes]]]:
    if place.is_dir():
        for path in sorted(place.rglob("*")):
            if path.name in names and path.is_file():
                with path.open("rb") as file:
                    yield path.name, file
        return
    try:
        if place.name.endswith(".zip"):
            with zipfile.ZipFile(place) as archive:
                for info in archive.infolist():
                    if PurePosixPath(info.filename).name in names:
                        with archive.open(info) as file:
                            yield PurePosixPath(info.filename).name, file
            return
        with tarfile.open(place) as archive:
            for member in archive:
                if member.isfile() and PurePosixPath(member.name).name in names:
                    content = archive.extractfile(member)
                    assert content is not None  # it is a regular file
                    yield PurePosixPath(member.name).name, content
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, OSError) as error:
        raise InputError(f"'{place}' cannot be unpacked: {error}. Is it whole, and an archive?") from error


def as_folder(place: Path) -> Path:
    """A folder: the place itself, or the archive there unpacked once into the cache. Nothing lands outside of it."""
    if place.is_dir():
        return place
    if not place.name.endswith(ARCHIVES):
        raise InputError(f"'{place}' is neither a folder nor an archive ({', '.join(ARCHIVES)}).")
    stat = place.stat()
    mark = hashlib.blake2b(f"{place.resolve()} {stat.st_size} {stat.st_mtime_ns}".encode(), digest_size=8).hexdigest()
    target = cache_folder() / "unpacked" / f"{place.name.split('.')[0]}-{mark}"
    if target.is_dir():
        return target
    building = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        building.mkdir(parents=True)
        _unpack(place, building)
        with suppress(FileExistsError):  # another process was faster
            building.rename(target)
    except (tarfile.TarError, zipfile.BadZipFile, EOFError) as error:
        raise InputError(f"'{place}' cannot be unpacked: {error}. Is it whole, and an archive?") from error
    except OSError as error:
        if target.is_dir():
            return target
        raise StoreError(
            f"'{place}' cannot be unpacked into '{target.parent}': {error.strerror or error}. MQNET_CACHE names "
            "another folder."
        ) from error
    finally:
        shutil.rmtree(building, ignore_errors=True)
    return target


def _unpack(place: Path, target: Path) -> None:
    if place.name.endswith(".zip"):
        with zipfile.ZipFile(place) as archive:
            archive.extractall(target)  # drops absolute and upward paths itself
        return
    with tarfile.open(place) as archive:
        for member in archive:
            parts = PurePosixPath(member.name)
            if not member.isfile() or parts.is_absolute() or ".." in parts.parts:
                continue  # links and devices have no place in a data set
            content = archive.extractfile(member)
            assert content is not None  # it is a regular file
            path = target / parts
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as file:
                shutil.copyfileobj(content, file)
