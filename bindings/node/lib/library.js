// Finds the native library, loads it, and makes sure that it speaks this package's version of the interface.
//
// It is looked for in this order, and the first that is there is taken:
//   1. the file that the environment variable TIDEGATE_LIBRARY names;
//   2. native/PLATFORM-ARCH/ in this package, where `npm pack` puts what was built for it;
//   3. the system's own, as `make install` puts it.

const fs = require("node:fs");
const path = require("node:path");
const koffi = require("koffi");

/** The version of include/tidegate.h that this package was written for. */
const ABI_VERSION = 1;

/** The library cannot be used. */
class LibraryError extends Error {
  get name() {
    return "LibraryError";
  }
}

const FILES = { linux: "libtidegate.so.1", darwin: "libtidegate.1.dylib" };

function candidate() {
  const named = process.env.TIDEGATE_LIBRARY;
  if (named) return { file: named, origin: "TIDEGATE_LIBRARY" };
  const file = FILES[process.platform];
  if (file === undefined) {
    throw new LibraryError(`tidegate has no library for ${process.platform}; name one with TIDEGATE_LIBRARY`);
  }
  const packaged = path.join(__dirname, "..", "native", `${process.platform}-${process.arch}`, file);
  return fs.existsSync(packaged) ? { file: packaged, origin: "the package" } : { file, origin: "the system" };
}

function load() {
  const { file, origin } = candidate();
  let library;
  try {
    library = koffi.load(file);
  } catch (cause) {
    throw new LibraryError(
      `the library ${file} (from ${origin}) cannot be loaded; install it (make install) or name one with TIDEGATE_LIBRARY: ${cause.message}`,
      { cause },
    );
  }
  let version;
  try {
    version = library.func("tidegate_abi_version", "uint32_t", [])();
  } catch (cause) {
    throw new LibraryError(`${file} (from ${origin}) is no tidegate library: ${cause.message}`, { cause });
  }
  if (version !== ABI_VERSION) {
    throw new LibraryError(
      `${file} (from ${origin}) speaks version ${version} of the interface, this package speaks ${ABI_VERSION}: install the library that belongs to it`,
    );
  }
  return { library, file };
}

module.exports = { ABI_VERSION, LibraryError, load };
