import unittest

from . import regret

CONFIGURATIONS = {
    "mps": {"description": "MPS"},
    "sliced": {"description": "time-sliced, nothing set"},
    "isolated-2x": {"description": "ours, LS isolated, latency=2x"},
    "in-5ms": {"description": "ours, latency=5ms for LS"},
}


def at(p99_us, batch):
    return {"p99_us": {"median": 2 * p99_us}, "burst_p99_us": {"median": p99_us}, "throughput": {"median": batch}}


def cell(alone_us=1000, **points):
    alone = {"p99_us": alone_us and {"median": alone_us}}
    return {
        "ls": "resnet",
        "batch": "train",
        "alone": alone,
        "points": {name.replace("_", "-"): point for name, point in points.items()},
    }


def one(found):
    ((regrets,), unknown) = list(found[0].values()), found[1]
    return regrets[0], unknown


class Regret(unittest.TestCase):
    def test_a_target_is_read_from_the_description(self):
        read = [regret.target_of(about["description"]) for about in CONFIGURATIONS.values()]
        self.assertEqual(read, [None, None, (2.0, "x"), (5.0, "ms")])
        self.assertEqual(regret.target_us((5.0, "ms"), {"p99_us": None}), 5000)
        self.assertEqual(regret.target_us((1.5, "x"), {"p99_us": {"median": 1000}}), 1500)

    def test_where_any_configuration_meets_it_regret_is_in_batch(self):
        points = {"mps": at(9000, 100), "sliced": at(1900, 50), "isolated_2x": at(2000, 48)}
        found, unknown = one(regret.all_of([cell(**points)], CONFIGURATIONS))
        self.assertEqual((found.met, found.can_be_met, found.best, found.ratio), (True, True, "sliced", 0.96))
        self.assertTrue(found.is_good)
        self.assertEqual(unknown, [])
        slower, _ = one(regret.all_of([cell(**{**points, "isolated_2x": at(2000, 46)})], CONFIGURATIONS))
        self.assertFalse(slower.is_good)
        missed, _ = one(regret.all_of([cell(**{**points, "isolated_2x": at(2001, 60)})], CONFIGURATIONS))
        self.assertEqual((missed.met, missed.can_be_met, missed.is_good), (False, True, False))

    def test_it_may_be_the_best_itself(self):
        found, _ = one(regret.all_of([cell(mps=at(9000, 100), isolated_2x=at(1500, 70))], CONFIGURATIONS))
        self.assertEqual((found.best, found.ratio, found.is_good), ("isolated-2x", 1.0, True))

    def test_where_nothing_meets_it_regret_is_in_p99(self):
        found, _ = one(regret.all_of([cell(mps=at(3000, 100), isolated_2x=at(3300, 10))], CONFIGURATIONS))
        self.assertEqual((found.met, found.can_be_met, found.best), (False, False, "mps"))
        self.assertAlmostEqual(found.ratio, 1.1)
        worse, _ = one(regret.all_of([cell(mps=at(3000, 100), isolated_2x=at(3400, 200))], CONFIGURATIONS))
        self.assertFalse(worse.is_good)

    def test_without_a_measurement_alone_only_a_time_is_known(self):
        points = {"mps": at(3000, 100), "isolated_2x": at(3300, 10), "in_5ms": at(3300, 95)}
        found, unknown = regret.all_of([cell(None, **points)], CONFIGURATIONS)
        self.assertEqual(unknown, [("resnet", "train", "isolated-2x")])
        self.assertEqual(list(found), ["in-5ms"])
        self.assertAlmostEqual(found["in-5ms"][0].ratio, 0.95)

    def test_the_tables(self):
        cells = [
            cell(mps=at(9000, 100), sliced=at(1900, 50), isolated_2x=at(2000, 48)),
            cell(mps=at(3000, 100), isolated_2x=at(3150, 60)),
            cell(None, mps=at(3000, 100), isolated_2x=at(3300, 10)),
        ]
        rows, unknown = regret.tables(cells, CONFIGURATIONS)
        self.assertEqual(rows[1][1:], ["2 ms", "2 ms", "0.960 of batch of the best that meets it", "sliced"])
        self.assertEqual(rows[2][3:], ["1.050 of least p99; nothing meets it", "mps"])
        self.assertEqual(
            [row[0] for row in rows[3:]],
            [
                "met in 1 of 1 where any configuration meets it, with 0.960 of its batch or more",
                "in 1 nothing meets it: 1.050 of the least p99 at most",
            ],
        )
        self.assertEqual(unknown[1], ["resnet x train, isolated-2x"])
        self.assertEqual(list(regret.tables([cell(mps=at(1, 1))], CONFIGURATIONS)), [])


if __name__ == "__main__":
    unittest.main()
