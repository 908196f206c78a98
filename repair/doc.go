// Package repair turns a diagnosis into a plan, tries the plan on scratch copies with real servers, carries it out and
// proves the result.
//
// The order is fixed: NewPlan reads the sources and writes down what would be done and why; Rehearse does it to copies
// in a sandbox; Apply does it for real, into new data dirs or against the running cluster. A plan is a file that people
// can review: typed steps, each with its precondition, effect, undo and the test that tells whether it is done already,
// and the commands for those who do it by hand. It is bound to the digests of the sources it was made from.
//
// What happened is written to a journal beside the plan before and after every step and flushed to disk, so that a run
// that was killed at any moment goes on where it stood. Nothing is ever deleted: data dirs are moved aside, sources are
// only read.
package repair
