package run

import (
	"errors"
	"fmt"

	"github.com/etcd-medic/etcd-medic/node"
	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/repair/datadir"
)

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
	var ours *refusal.Error
	var nodes *node.RefusedError
	var dirs *datadir.RefusedError
	switch {
	case err == nil || errors.As(err, &ours):
	case errors.As(err, &nodes):
		return &refusal.Error{Reason: nodes.Error(), Hint: nodes.Hint, Err: err}
	case errors.As(err, &dirs):
		return &refusal.Error{Reason: dirs.Reason, Err: err}
	}
	return err
}
