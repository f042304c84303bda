"""Plans: estimates as plain values that say what work is to be done.

Two metrics whose plans compare equal need the same numbers, so that a suite computes
them once.
"""

from sklearn.utils.parallel import Parallel, delayed

from skdisent._sklearn import one_blas_thread

__all__ = ["Plan", "delayed", "run"]


class Plan:
    """Base of all plans; a subclass is a frozen dataclass."""

    def prepare(self, sample):
        """Return the independent tasks of the work, and what joins their results.

        Parameters
        ----------
        sample : Sample
            What is to be estimated from.

        Returns
        -------
        tasks : list of delayed calls
            In any order, by any backend of joblib.
        collect : callable
            Maps the results, in the order of the tasks, to the estimate.
        """
        raise NotImplementedError

    def estimate(self, sample, n_jobs=None):
        """Return the estimate."""
        tasks, collect = self.prepare(sample)
        return collect(list(run(tasks, n_jobs)))


def run(tasks, n_jobs=None):
    """Yield the results of tasks in their order.

    Each result is there when it is done; all together where the backend of joblib, as
    multiprocessing, cannot do that.
    """
    try:
        parallel = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")
    except ValueError:
        parallel = Parallel(n_jobs=n_jobs, prefer="threads")
    # The threads of the jobs are enough: more would wait for each other.
    with one_blas_thread():
        yield from parallel(tasks)
