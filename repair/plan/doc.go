// Package plan turns a diagnosis into a plan. It starts no server and writes nothing but the plan file.
//
// New reads the sources and writes down what would be done and why. A plan is a file that people can review. Its steps
// are typed, each with its precondition, effect, undo and the test that shows whether it is done already, and the
// commands for doing it by hand. It is bound to the digests of its sources. Repairs of damaged data dirs are promised
// only when they worked on a scratch copy; the caller passes in the code that tries them (Scratch, package try).
//
// Package run rehearses a plan and carries it out.
package plan
