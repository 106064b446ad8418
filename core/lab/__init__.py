"""Tasks, evaluations, trainings, tunings and studies."""
