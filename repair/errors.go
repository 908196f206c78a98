package repair

import (
	"errors"
	"fmt"

	"github.com/etcd-medic/etcd-medic/node"
	"github.com/etcd-medic/etcd-medic/repair/datadir"
)

// RefusedError says that a precondition does not hold: nothing was done. Commands end with exit code 5.
type RefusedError struct {
	// Reason is what does not hold, Hint what to do about it.
	Reason, Hint string
	Err          error
}

// Error returns the reason on one line.
func (e *RefusedError) Error() string { return "refused: " + e.Reason }

// Refused tells commands to end with exit code 5.
func (e *RefusedError) Refused() bool { return true }

// Unwrap returns the error behind the refusal, if there is one.
func (e *RefusedError) Unwrap() error { return e.Err }

func refusedf(hint, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &RefusedError{Reason: err.Error(), Hint: hint, Err: err}
}

// UnfinishedError says that a run began and did not reach its goal; the journal says where it stands. Commands end with
// exit code 6.
type UnfinishedError struct {
	// Step is the step that failed, Journal the file that tells the rest.
	Step    string
	Journal string
	Hint    string
	Err     error
}

// Error names the step and what went wrong.
func (e *UnfinishedError) Error() string { return fmt.Sprintf("step %s: %v", e.Step, e.Err) }

// Unwrap returns what went wrong.
func (e *UnfinishedError) Unwrap() error { return e.Err }

// AsRefusal turns what the packages below refuse into a refusal of ours: it is the same thing to the operator.
func AsRefusal(err error) error {
	var ours *RefusedError
	var nodes *node.RefusedError
	var dirs *datadir.RefusedError
	switch {
	case err == nil || errors.As(err, &ours):
	case errors.As(err, &nodes):
		return &RefusedError{Reason: nodes.Error(), Hint: nodes.Hint, Err: err}
	case errors.As(err, &dirs):
		return &RefusedError{Reason: dirs.Reason, Err: err}
	}
	return err
}
