// Package refusal has the one error that says no: a precondition does not hold, or a consequence was not accepted, and
// nothing was done. Commands end with exit code 5.
package refusal

import "fmt"

// Error is a refusal.
type Error struct {
	// Reason is what does not hold, Hint what to do about it; Hint may be empty.
	Reason, Hint string
	// Err is the error that led to the refusal, nil when there is none.
	Err error
}

// New refuses with a hint.
func New(hint, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &Error{Reason: err.Error(), Hint: hint, Err: err}
}

// Error returns the reason on one line.
func (e *Error) Error() string { return "refused: " + e.Reason }

// Refused makes commands end with exit code 5.
func (e *Error) Refused() bool { return true }

// Unwrap returns the error that led to the refusal, if there is one.
func (e *Error) Unwrap() error { return e.Err }
