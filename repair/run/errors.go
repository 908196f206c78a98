package run

import "fmt"

// UnfinishedError says that a run began and did not reach its goal; the journal shows its progress. Commands end with
// exit code 6.
type UnfinishedError struct {
	// Step is the step that failed, Journal the file with everything before it.
	Step    string
	Journal string
	Hint    string
	Err     error
}

// Error names the step and what went wrong.
func (e *UnfinishedError) Error() string { return fmt.Sprintf("step %s: %v", e.Step, e.Err) }

// Unwrap returns what went wrong.
func (e *UnfinishedError) Unwrap() error { return e.Err }
