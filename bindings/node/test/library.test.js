// The library is found, and one that is not this package's is refused, in processes of their own.

const assert = require("node:assert/strict");
const { execFileSync, spawnSync } = require("node:child_process");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const { after, before, describe, test } = require("node:test");

const ROOT = path.join(__dirname, "..");
const REAL = process.env.TIDEGATE_LIBRARY;
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "tidegate-node-"));
after(() => fs.rmSync(folder, { recursive: true }));

/** What a program says that loads the package. */
function load(library, root = ROOT) {
  const { TIDEGATE_LIBRARY: _, ...environment } = process.env;
  const env = library === undefined ? environment : { ...environment, TIDEGATE_LIBRARY: library };
  const program = `
    try { console.log("works", require(${JSON.stringify(root)}).Gate.name); }
    catch (error) { console.log(error.name, error.message); }`;
  return spawnSync(process.execPath, ["-e", program], { env, encoding: "utf8" }).stdout.trim();
}

test("a file that is not there", () => {
  const said = load("/no/such/libtidegate.so");
  assert.match(
    said,
    /^LibraryError the library \/no\/such\/libtidegate\.so \(from TIDEGATE_LIBRARY\) cannot be loaded; /,
  );
  assert.match(said, /make install/);
});

test("the library that the environment names", () => {
  assert.equal(load(REAL), "works Gate");
});

test("the library that the package brings", () => {
  const copy = path.join(folder, "package");
  const native = path.join(copy, "native", `${process.platform}-${process.arch}`);
  fs.mkdirSync(native, { recursive: true });
  for (const part of ["lib", "package.json"])
    fs.cpSync(path.join(ROOT, part), path.join(copy, part), { recursive: true });
  fs.symlinkSync(path.join(ROOT, "node_modules"), path.join(copy, "node_modules"));
  fs.copyFileSync(REAL, path.join(native, process.platform === "darwin" ? "libtidegate.1.dylib" : "libtidegate.so.1"));
  assert.equal(load(undefined, copy), "works Gate");
});

describe("other libraries", { skip: hasCompiler() ? false : "no C compiler (cc) to build them with" }, () => {
  const other = path.join(folder, "other.so");
  const none = path.join(folder, "none.so");
  before(() => {
    compile("unsigned tidegate_abi_version(void) { return 7; }", other);
    compile("int something_else(void) { return 7; }", none);
  });

  test("of another version", () => {
    assert.equal(
      load(other),
      `LibraryError ${other} (from TIDEGATE_LIBRARY) speaks version 7 of the interface, this package speaks 1: install the library that belongs to it`,
    );
  });

  test("that is no tidegate", () => {
    assert.match(load(none), /^LibraryError .*none\.so \(from TIDEGATE_LIBRARY\) is no tidegate library: /);
  });
});

function hasCompiler() {
  return spawnSync("cc", ["--version"]).status === 0;
}

function compile(source, to) {
  const file = `${to}.c`;
  fs.writeFileSync(file, source);
  execFileSync("cc", ["-shared", "-fPIC", file, "-o", to]);
}
