#!/usr/bin/env python3
"""Unit tests of embed_worker.py: what it makes of a template, and what it refuses."""

import unittest

import embed_worker

TEMPLATE = """
#text worker
.entry worker()
{
  .reg .b32 %r<1>, %at;
  .reg .pred %p;
#names %r0 %begin %end
#use start
#if joins
  @%p bra $next;
#else
  bra $next;
#end
#use finish
}

#text start  // of it
  ld.param.u32 %begin, [args.by_grid_x.magic];
  setp.ne.u32 %p, %begin, kClosed;
$next:

#text finish
  mov.u32 %end, %tid.x;
  st.shared.u32 [shared.known], %end;
  st.global.u32 [%at+DeviceSlot.next], %end;
"""


def embedded(*changes):
    text = TEMPLATE
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    return embed_worker.embed([("t.ptx.in", text)])


class EmbedWorker(unittest.TestCase):
    def test_writes_fragments_with_their_places(self):
        elements = [line for line in embedded().splitlines() if line.endswith("),") and not line.startswith("  ")]
        for element in (
            "argument(offsetof(LaunchArgs, by_grid_x.magic)),",
            "number(kClosed),",
            "when(&WorkerShape::joins),",
            "otherwise(),",
            "end(),",
            "shared_word(offsetof(SharedWords, known)),",
            "number(offsetof(DeviceSlot, next)),",
        ):
            self.assertIn(element, elements)
        self.assertIn('#line 18 "t.ptx.in"\nargument(', embedded())
        self.assertIn("  ld.param.u32 %gpuslice_r0, ", embedded())
        self.assertIn("  mov.u32 %gpuslice_r0, %tid.x;\n", embedded())
        self.assertIn("  @%gpuslice_p bra $gpuslice_next;\n", embedded())
        self.assertNotIn("of it", embedded())

    def refuses(self, reason, *changes):
        with self.subTest(reason), self.assertRaises(embed_worker.Wrong) as caught:
            embedded(*changes)
        self.assertRegex(str(caught.exception), r"^t\.ptx\.in:\d+: " + reason)

    def test_refuses_unknown_names(self):
        self.refuses("%other is not declared", ("mov.u32 %end", "mov.u32 %other"))
        self.refuses("%r0 is not declared", ("mov.u32 %end", "mov.u32 %r0"))
        self.refuses(r"\$other is not declared", ("  bra $next", "  bra $other"))
        self.refuses("no text is called other", ("#use start", "#use other"))
        self.refuses("%more is declared twice, or %r1 is not", ("#use start", "#names %r1 %more\n#use start"))

    def test_refuses_unused_names(self):
        self.refuses("nothing uses %more", ("%end\n", "%end %more\n"))
        self.refuses("nothing uses %r1", ("%r<1>", "%r<2>"))
        self.refuses(r"nothing uses \$more", ("$next:", "$next:\n$more:"))
        self.refuses("nothing uses the text finish", ("#use finish", "  mov.u32 %end, 0; st.u32 [0], %end;"))

    def test_refuses_what_it_does_not_understand(self):
        self.refuses("not understood here: #end", ("#if joins", "#end"))
        self.refuses("an #if without its #end", ("#end\n", ""))
        self.refuses("not understood: #when joins or not", ("#if joins", "#when joins or not"))
        self.refuses("it belongs to no text", ("#text worker\n", ""))
        self.refuses("start uses itself", ("$next:", "$next:\n#use start"))
        self.refuses("a second text called start", ("#text finish", "#text start"))

    def test_refuses_values_overwritten_under_another_name(self):
        overwritten = "%begin may have been overwritten as %end"
        self.refuses(overwritten, ("  st.shared", "  st.global.u32 [%at], %begin;\n  st.shared"))
        self.refuses(overwritten, ("  setp.ne", "  mov.u32 %end, 0;\n  setp.ne"))
        self.refuses(overwritten, ("  setp.ne", "  @%p mov.u32 %end, 0;\n  setp.ne"))
        both = "  @%p mov.u32 %begin, 0;\n  @!%p mov.u32 %begin, 1;\n  setp.ne"
        embedded(("  setp.ne", "  mov.u32 %end, 0;\n" + both))


if __name__ == "__main__":
    unittest.main()
