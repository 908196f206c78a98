// Package plan turns a diagnosis into a plan. It starts no server and writes nothing but the plan file.
//
// New reads the sources and writes down what would be done and why. A plan is a file that people can review: typed
// steps, each with its precondition, effect, undo and the test that tells whether it is done already, and the commands
// for those who do it by hand. It is bound to the digests of the sources it was made from. Repairs of damaged data dirs
// are promised only when they worked on a scratch copy: what tries them comes from outside (Scratch, package try).
//
// Package run rehearses a plan and carries it out.
package plan
