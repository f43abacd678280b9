"""The stage of a rehearsal: a training function executed with stand-ins for its parameters."""
