import unittest

from . import aims


def at(p99, batch, spread=0.0):
    return {
        "p99_us": {"median": p99, "least": p99 * (1 - spread), "greatest": p99 * (1 + spread)},
        "throughput": {"median": batch, "least": batch * (1 - spread), "greatest": batch * (1 + spread)},
    }


def cell(**points):
    named = {name.replace("_", "-"): point for name, point in points.items()}
    return {"ls": "short", "batch": "train", "points": named}


class Aims(unittest.TestCase):
    def test_each_cell_is_compared_with_what_is_aimed_at(self):
        (rows,) = aims.tables([cell(ours=at(102, 96), mps=at(100, 100)), cell(ours=at(102.4, 94), mps=at(100, 100))])
        self.assertEqual(rows[0], ["ours over stock", "stock", "LS p99, at most 1.02", "batch, at least 0.95"])
        self.assertEqual(rows[1], ["short x train", "mps", "1.020", "0.960"])
        self.assertEqual(rows[2], ["short x train", "mps", "1.024 missed", "0.940 missed"])
        self.assertEqual(rows[3], ["mean of 2 (at least 0.98)", "", "", "0.950 missed"])

    def test_the_stock_configuration_with_the_least_p99_counts(self):
        (rows,) = aims.tables([cell(ours_priority=at(110, 99), mps_stream=at(120, 100), mps_client=at(100, 98))])
        self.assertEqual(rows[1], ["short x train", "mps-client", "1.100 missed", "1.010"])

    def test_it_is_said_where_ranges_overlap(self):
        (rows,) = aims.tables([cell(ours=at(110, 90, 0.1), mps=at(100, 100, 0.1))])
        self.assertEqual(rows[1][2:], ["1.100 missed, ranges overlap", "0.900 missed, ranges overlap"])

    def test_what_was_not_run_on_both_sides_is_left_out(self):
        self.assertEqual(list(aims.tables([cell(ours=at(1, 1)), cell(mps=at(1, 1))])), [])


if __name__ == "__main__":
    unittest.main()
