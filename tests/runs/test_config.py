# Being written by another helper right now (learning/* and runs/* are theirs): leave this file alone.
