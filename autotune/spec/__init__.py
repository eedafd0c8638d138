"""What the user says: model, cluster, workload, layout and search space, frozen and validated."""
