"""What a run folder holds while a run goes on and after it: status and failures."""
