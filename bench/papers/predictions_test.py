import random
import unittest

from . import predictions


class Predictions(unittest.TestCase):
    def test_inputs_lie_between_two_sizes_and_differ(self):
        rng = random.Random(1)
        drawn = [predictions.random_extent(rng, [100, 7, 0], [10_000, 7, 0]) for _ in range(50)]
        self.assertTrue(all(100 <= extent[0] <= 10_000 and extent[1:] == [7, 0] for extent in drawn))
        self.assertGreater(len({extent[0] for extent in drawn}), 40)
        below = sum(extent[0] < 1000 for extent in drawn)  # half of them, on a logarithmic scale
        self.assertTrue(15 < below < 35, below)

    def test_a_size_may_have_less_of_something(self):
        number, *_ = predictions.random_extent(random.Random(1), [40], [21])
        self.assertTrue(21 <= number <= 40)

    def test_the_first_number_of_an_input_varies_most(self):
        least, most = predictions.bounds({"small": [100, 10, 0], "large": [8000, 30, 0]})
        self.assertEqual((least, most), ([1000, 10, 0], [32_000, 30, 0]))

    def test_the_main_kernel_is_the_one_that_takes_most_time(self):
        often = {"name": "often", "inputs": [{"launches": 100, "alone_us": 3}, {"launches": 100, "alone_us": 3}]}
        once = {"name": "once", "inputs": [{"launches": 1, "alone_us": 500}]}
        self.assertEqual(predictions.main_kernel([once, often])["name"], "often")


if __name__ == "__main__":
    unittest.main()
