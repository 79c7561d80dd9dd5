#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Each lint is silent about a good tree, and says so when one thing in it is bad."""

import pathlib
import subprocess
import sys
import tempfile

import tree as lint

HERE = pathlib.Path(__file__).resolve().parent
SPDX = "/* SPDX-License-Identifier: MIT */\n"
HEADER = SPDX + "#ifndef RSB_X_H\n#define RSB_X_H\n\nint rsb_x(void);\n\n#endif\n"
SOURCE = SPDX + '#include "util/x.h"\n\nint\nrsb_x(void)\n{\n\treturn 0;\n}\n'
# Both are spelled in pieces, since the style lint reads this file too.
MARK = "TO" "DO"
PLACE = "/wo" "rk/main"


def body(lines):
    return SPDX + "void\nf(void)\n{\n" + lines + "}\n"


def including(header):
    return SPDX + f"#include {header}\n"


def verb(name, options="", more=""):
    return (SPDX + f"static const struct option options[] = {{\n\t{options}{{ 0 }},\n}};\n\n"
            f"const struct rsb_verb rsb_verb_{name} = {{\n\t.name = \"{name}\",\n"
            f"\t.more = \"{more}\",\n\t.options = options,\n}};\n")


def setting(key, value="1"):
    return SPDX + ("/* clang-format off */\nstatic const struct row rows[] = {\n"
                   f'\t{{ "s", "{key}", NUMBER, 0, AT(s.{key}), "{value}", NULL, 0, 0 }},\n}};\n')


# lint, what is wrong, the file, its text, what is said
BAD = [
    ("layers", "upward", "common/util/y.c", including('"fuse/y.h"'), "does not stand on fuse"),
    ("layers", "sideways", "fuse/y.c", including('"exec/y.h"'), "does not stand on exec"),
    ("layers", "host part in the sidecar", "sidecar/y.c", including('"link/y.h"'),
     "does not stand on link"),
    ("layers", "agent in the sidecar's core", "sidecar/y.c", including('"sidecar/envd/y.h"'),
     "does not stand on sidecar/envd"),
    ("layers", "JSON in the sidecar's core", "sidecar/y.c", including('"util/json.h"'),
     "not for sidecar"),
    ("layers", "no floor", "common/util/y.c", including('"x.h"'), "name it by its floor"),
    ("layers", "no such header", "common/util/y.c", including('"util/none.h"'), "no such file"),
    ("layers", "climbing", "fuse/y.c", including('"util/../util/x.h"'), "does not climb"),
    ("layers", "climbing <>", "fuse/y.c", including("<../x.h>"), "does not climb"),
    ("layers", "wrong home", "common/link/y.c", including("<jansson.h>"),
     "its home is common/util/json.c"),
    ("layers", "home in a header", "common/util/y.h", including("<nettle/sha2.h>"),
     "its home is common/util/hash.c"),
    ("layers", "fuse outside", "exec/y.c", including("<fuse_lowlevel.h>"), "its home is fuse/"),
    ("layers", "second home", "sidecar/local/z.c", including("<microhttpd.h>"),
     "its home is sidecar/local/y.c already"),
    ("layers", "homeless", "fuse/y.c", including("<glib.h>"), "without a home"),
    ("layers", "indented", "fuse/y.c", SPDX + "# include <glib.h>\n", "without a home"),
    ("layers", "own header last", "common/util/x.c",
     including("<errno.h>") + '#include "util/x.h"\n', '#include "util/x.h": comes too late'),
    ("layers", "system after ours", "fuse/y.c", including('"util/x.h"') + "#include <errno.h>\n",
     "#include <errno.h>: comes too late"),
    ("layers", "system after foreign", "fuse/y.c",
     including("<fuse_lowlevel.h>") + "#include <errno.h>\n", "#include <errno.h>: comes too late"),
    ("layers", "top directory", "tools/y.sh", "\n", "tools: does not belong"),
    ("layers", "top file", "STYLE.md", "x\n", "STYLE.md: does not belong"),
    ("layers", "C elsewhere", "packaging/y.c", SPDX, "outside of every layer"),
    ("style", "no licence", "fuse/y.c", "int x;\n", "the first line is"),
    ("style", "no licence in a table", "fuse/y.def", "int x;\n", "the first line is"),
    ("style", "long file", "fuse/y.c", SPDX + "int x;\n" * 500, "501 lines"),
    ("style", "long table", "fuse/y.def", SPDX + "ROW(x)\n" * 500, "501 lines"),
    ("style", "long script", "tests/e2e/y.py", "x = 1\n" * 501, "501 lines"),
    ("style", "long script 2", "packaging/y", "#!/usr/bin/env bash\n" + "x=1\n" * 500, "501 lines"),
    ("style", "long function", "fuse/y.c", body("\tf();\n" * 61), "a function of 61 lines"),
    ("style", "global", "fuse/y.c", SPDX + "static int x;\n", ":2: something static"),
    ("style", "global 2", "fuse/y.c", SPDX + "static struct {\n\tint x;\n} y;\n",
     ":2: something static"),
    ("style", "static in a function", "fuse/y.c", body("\tstatic int n = 1;\n"), ":5: something"),
    ("style", "wide comment", "fuse/y.c", SPDX + "\tint x; /* " + "y" * 81 + " */\n",
     ":2: a comment wider"),
    ("style", "other comment", "fuse/y.c", SPDX + "int x; // y\n", ":2: comments are"),
    ("style", "mark", "fuse/y.c", SPDX + f"/* {MARK}: y */\n", f":2: {MARK}"),
    ("style", "mark elsewhere", "README.md", f"x {MARK} y\n", f"README.md:1: {MARK}"),
    ("style", "trailing blank", "fuse/meson.build", "x \n", ":1: blanks"),
    ("style", "trailing tab", "fuse/y.c", SPDX + "int x;\t\n", ":2: blanks"),
    ("style", "trailing line", "fuse/y.c", SPDX + "\n", "blank lines at the end"),
    ("style", "place", "README.md", f"in {PLACE}\n", "directory of one machine"),
    ("style", "no guard", "fuse/y.h", SPDX + "int x;\n", "no header guard"),
    ("style", "open guard", "fuse/y.h", SPDX + "#ifndef RSB_Y_H\n#define RSB_Z_H\n#endif\n",
     "no header guard"),
    ("style", "other guard", "fuse/y.h", SPDX + "#ifndef RSB_Z_H\n#define RSB_Z_H\n#endif\n",
     "is not RSB_..Y_H"),
    ("style", "same guard", "fuse/x.h", HEADER, "is that of common/util/x.h"),
    ("style", "goto", "fuse/y.c", body("\trsb_autofree char *p = x();\n\tgoto out;\nout:\n"),
     "goto beside"),
    ("style", "goto 2", "fuse/y.c", body("\tRSB_CLEANUP(d) int p;\n\tgoto out;\nout:\n"),
     "goto beside"),
    ("format", "layout", "fuse/y.c", SPDX + "int  x;\n", "fuse/y.c:2"),
    ("tidy", "comparison", "fuse/y.c", SPDX + "#include <string.h>\n\nint\nf(const char *a)\n{\n"
     '\tif (strcmp(a, "x"))\n\t\treturn 1;\n\treturn 0;\n}\n', "bugprone-suspicious-string-compare"),
    ("tidy", "parameters", "exec/y.c", SPDX + "int\nf(int a, int b, int c, int d, int e, int f, int g)\n{\n"
     "\treturn a + b + c + d + e + f + g;\n}\n", "readability-function-size"),
    ("shell", "unquoted", "packaging/y", "#!/bin/sh\nrm $1\n", "SC2086"),
    ("shell", "by name", "packaging/y.sh", "#!/bin/bash\ncd x\nrm \"$1\"\n", "SC2164"),
    ("man", "macro", "man/y.1", ".Dd January 1, 2026\n.Dt Y 1\n.Os\n.Sh NAME\n.Nm y\n.Nd y\n.Zz\n",
     "unknown macro"),
    ("usage", "verb without a page", "exec/cmd-z.c", verb("z"), "the verb z is missing"),
    ("usage", "option without help", "exec/cmd-x.c",
     verb("x", "{ \"all\", no_argument, NULL, 'a' },\n\t"), "--all is not in the help of x"),
    ("usage", "option without a page", "exec/cmd-x.c",
     verb("x", "{ \"both\", no_argument, NULL, 'b' },\n\t", "--both"), "--both of x is missing"),
    ("usage", "help without option", "exec/cmd-x.c", verb("x", more="--none"), "x has no --none"),
    ("usage", "setting without a page", "common/keeper/setting.c", setting("l"), "s.l is missing"),
    ("usage", "page without setting", "common/keeper/setting.c", setting("l"), "there is no s.k"),
    ("usage", "another default", "common/keeper/setting.c", setting("k", "2"), "2 is its default"),
    ("usage", "word without help", "fuse/options.c", SPDX + '/* { "word", &o->word, true } */\n', "word is not in the help"),
    ("usage", "status without a page", "fuse/status.c",
     SPDX + '/* struct number numbers[] = { { "n", 1 }, }; set_numbers(json, "fs" */\n', "the status fs.n is missing"),
    ("usage", "verb in the README", "README.md", "Try `rsb none`.\n", "there is no verb none"),
]

# What looks bad and is not.
GOOD = {
    "common/util/x.h": HEADER,
    "common/util/x.c": SOURCE.replace('x.h"\n', 'x.h"\n\n#include <errno.h>\n'),
    "common/util/json.h": HEADER.replace("_X_", "_JSON_"),
    "common/util/json.c": including("<jansson.h>"),
    "fuse/ok.c": SPDX + "#include <errno.h>\n#include <sys/stat.h>\n\n"
                 '#include <fuse_lowlevel.h>\n\n#include "util/x.h"\n\n'
                 "/* see http://example.org */\n"
                 'const char *const url = "http://example.org/*/x";\n',
    "fuse/long.c": body("\tf();\n" * 60) + body("\tgoto out;\nout:\n\tf();\n").replace(SPDX, "\n"),
    "fuse/still.c": SPDX + "static const int x[] = { 1 };\n"
                    "static const char *const y[] = { z };\nstatic int f(int a);\n"
                    'static const char text[] =\n\t"' + "x" * 100 + '";\n',
    "fuse/wide.def": SPDX + "ROW(x" + ", x" * 100 + ")\n" * 400,
    "sidecar/local/y.c": including("<microhttpd.h>") + '\n#include "util/json.h"\n',
    "tests/unit/test-x.c": including("<jansson.h>") + '\n#include "local.h"\n#include "util/x.h"\n',
    "tests/unit/local.h": HEADER.replace("_X_", "_LOCAL_"),
    "packaging/run": '#!/bin/sh\nrm "$1"\n',
    "README.md": "Try `rsb x`. See /home/user/workspace, \"/wo" "rk/x\" and x" + PLACE + ".\n",
    "man/x.1": ".Dd January 1, 2026\n.Dt X 1\n.Os\n.Sh NAME\n.Nm x\n.Nd y\n"
               ".Sh DESCRIPTION\nText.\n",
    "man/rsb.1": ".Dd January 1, 2026\n.Dt RSB 1\n.Os\n.Sh NAME\n.Nm rsb\n.Nd y\n"
                 ".Sh DESCRIPTION\n.Bl -tag -width Ds\n.It Cm x Op Fl \\-all\nText.\n.El\n",
    "man/rsb.conf.5": ".Dd January 1, 2026\n.Dt RSB.CONF 5\n.Os\n.Sh NAME\n.Nm rsb.conf\n.Nd y\n"
                      ".Sh DESCRIPTION\nText.\n.Ss [s]\n.Bl -tag -width Ds\n.It Ar k No = 1\nText.\n.El\n"
                      ".Sh EXAMPLES\nText.\n",
    "exec/cmd-x.c": verb("x", "{ \"all\", no_argument, NULL, 'a' },\n\t", "--all"),
    "common/keeper/setting.c": setting("k"),
    "build-x/y.c": "int x; // not ours\n",
    # What others may include in the bad samples.
    "exec/y.h": SPDX + "#ifndef RSB_EXEC_Y_H\n#define RSB_EXEC_Y_H\n#endif\n",
    "common/link/y.h": SPDX + "#ifndef RSB_LINK_Y_H\n#define RSB_LINK_Y_H\n#endif\n",
}


# The same for a lint that compiles what it looks at.
COMPILES = {
    "common/util/x.h": HEADER,
    "common/util/x.c": SOURCE,
    "fuse/long.c": GOOD["fuse/long.c"].replace("f();", ";").replace("\nf(void)", "\ng(void)", 1),
    "packaging/y.c": body("\tundeclared();\n"),  # not one of the programs
}


def write(root, name, text):
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def run(name, root):
    done = subprocess.run([sys.executable, "-B", str(HERE / f"check-{name}.py"), str(root)],
                          capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def complaint(name, what, path, text, said):
    """What a lint got wrong about one bad file, or None. "skip" if it cannot run."""
    with tempfile.TemporaryDirectory() as tmp:
        root = pathlib.Path(tmp)
        for good, good_text in (COMPILES if name == "tidy" else GOOD).items():
            write(root, good, good_text)
        for settings in (".clang-format", ".clang-tidy"):
            write(root, settings, (HERE.parents[1] / settings).read_text())
        if path:
            write(root, path, text)
        status, out = run(name, root)
    if status == lint.SKIP:
        return "skip"
    if path is None and (status != 0 or out):
        return f"{name}: complains about a good tree: {out}"
    if path is not None and (status != 1 or said not in out):
        return f"{name}: {what}: ended with {status}, said: {out}"
    return None


def main():
    name = sys.argv[1]
    cases = [(None, None, None, None)] + [bad[1:] for bad in BAD if bad[0] == name]
    found = [complaint(name, *case) for case in cases]
    if "skip" in found:
        lint.skip("the tool is not here")
    for text in filter(None, found):
        print(text)
    print(f"{len(cases)} trees")
    sys.exit(1 if any(found) else 0)


if __name__ == "__main__":
    main()
