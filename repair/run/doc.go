// Package run tries a plan on scratch copies with real servers, carries it out, and proves the result.
//
// The order is fixed: Rehearse does the plan to copies in a sandbox; Apply does it for real, into new data dirs or
// against the running cluster. Both do the steps with the same code, on different hosts.
//
// Before and after every step a line is written to a journal next to the plan and synced to disk. So a run that was
// killed at any moment continues where it stopped. Status and Abort say where that is, and how to undo it. Nothing is
// ever deleted: data dirs are moved aside, sources are only read.
package run
