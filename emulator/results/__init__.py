"""Records in; summaries, tables, figures and reports out. Everything here can be rebuilt from a run's directory."""
