"""Functions and classes are found in sources of many languages, with their last lines."""

import time

from tests.support.table import table
from tui_agent.tools.search.symbol_worker import symbols_of

PYTHON = """
@cached
class Shop:
    x = 1

    async def price(
        self,
    ) -> int:
        def inner(): ...

        return 1

    y = 2


def tax(): return 2
"""
SCRIPT = """export default class Shop {
  price() { return 1 }
}
export const tax = async (a) => {
  return a
}
interface Item { a: number }
const rate = 3
function* each() {
}
"""
GO = "type Shop struct {\n\tx int\n}\n\nfunc (s *Shop) Price() int {\n\treturn 1\n}\n"
RUST = (
    "pub(crate) struct Shop {\n    x: u8,\n}\nimpl Shop {\n    pub async fn price(&self) -> u8 {\n        1\n    }\n}\n"
)
JAVA = "public class Shop {\n    private static int price(int a) {\n        if (a) {\n        }\n        return 1;\n    }\n}\n"  # noqa: E501
C = "struct shop {\n  int x;\n};\nstatic int price(int a)\n{\n  if (a) {\n  }\n  return 1;\n}\nint declared(int a);\n"
RUBY = "class Shop\n  def self.price?\n    1\n  end\nend\n"
SHELL = "price() {\n  echo 1\n}\nfunction tax {\n  echo 2\n}\n"


@table(
    ("suffix", "text", "expected"),
    [
        (".py", PYTHON, [("Shop", 3, 13), ("price", 6, 11), ("inner", 9, 9), ("tax", 16, 16)]),
        (".ts", SCRIPT, [("Shop", 1, 3), ("tax", 4, 6), ("Item", 7, 7), ("each", 9, 10)]),
        (".go", GO, [("Shop", 1, 3), ("Price", 5, 7)]),
        (".rs", RUST, [("Shop", 1, 3), ("price", 5, 7)]),
        (".java", JAVA, [("Shop", 1, 7), ("price", 2, 6)]),
        (".c", C, [("shop", 1, 3), ("price", 4, 9)]),
        (".rb", RUBY, [("Shop", 1, 5), ("price?", 2, 4)]),
        (".sh", SHELL, [("price", 1, 3), ("tax", 4, 6)]),
    ],
)
def test_symbols_are_found_with_their_lines(suffix: str, text: str, expected: list[tuple[str, int, int]]) -> None:
    found = [(name, first, last) for name, _, first, last in symbols_of(text, suffix)]

    assert found == expected


@table("suffix", [".cpp", ".java", ".js", ".py"])
def test_a_hostile_line_takes_no_longer(suffix: str) -> None:
    text = "\n".join(["a::" * 40_000, "public static " + "a b " * 40_000, "const x" + " (" * 80_000])

    started = time.process_time()
    assert len(list(symbols_of(text, suffix))) <= 1
    assert time.process_time() - started < 1
