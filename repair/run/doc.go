// Package run tries a plan on scratch copies with real servers, carries it out, and proves the result.
//
// The order is fixed: Rehearse does the plan to copies in a sandbox; Apply does it for real, into new data dirs or
// against the running cluster. Both do the steps with the same code, on another host.
//
// What happened is written to a journal beside the plan before and after every step and flushed to disk, so that a run
// that was killed at any moment goes on where it stood; Status and Abort say where that is, and how to go back. Nothing
// is ever deleted: data dirs are moved aside, sources are only read.
package run
