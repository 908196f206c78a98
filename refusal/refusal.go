// Package refusal has the one error that says no: a precondition does not hold, or a consequence was not accepted.
// Nothing was done, or nothing of it remains. Commands end with exit code 5.
package refusal

import (
	"errors"
	"fmt"
	"strings"
)

// Error is a refusal.
type Error struct {
	// What is refused, "" when it is everything that was asked for.
	What string
	// Reason is what does not hold, Hint what to do about it; Hint may be empty.
	Reason, Hint string
	// Flag is the flag that accepts the consequence, "" when there is none.
	Flag string
	// Err is the error that led to the refusal, nil when there is none.
	Err error
}

// New refuses with a hint.
func New(hint, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &Error{Reason: strings.ReplaceAll(err.Error(), "\n", "; "), Hint: hint, Err: err} // joined errors have lines
}

// Error returns the reason on one line.
func (e *Error) Error() string {
	if e.What != "" {
		return e.What + " refused: " + e.Reason
	}
	return "refused: " + e.Reason
}

// Reason is what an error says without the word that it is a refusal.
func Reason(err error) string {
	var e *Error
	if errors.As(err, &e) && e.What == "" && err.Error() == e.Error() {
		return e.Reason
	}
	return err.Error()
}

// Advice returns the hint together with the flag that accepts the consequence.
func (e *Error) Advice() string {
	switch {
	case e.Flag == "":
		return e.Hint
	case e.Hint == "":
		return "accept it with --" + e.Flag
	}
	return fmt.Sprintf("%s, or accept it with --%s", e.Hint, e.Flag)
}

// Refused makes commands end with exit code 5.
func (e *Error) Refused() bool { return true }

// Unwrap returns the error that led to the refusal, if there is one.
func (e *Error) Unwrap() error { return e.Err }
