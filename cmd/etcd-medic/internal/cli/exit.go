package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/repair/plan"
	"github.com/etcd-medic/etcd-medic/repair/run"
)

// The exit codes; docs/EXIT-CODES.md documents them for users.
const (
	ExitDone         = 0   // done; no finding at or above --fail-on
	ExitError        = 1   // the tool could not do its job
	ExitUsage        = 2   // wrong usage
	ExitFindings     = 3   // findings at or above --fail-on
	ExitInconclusive = 4   // nothing found, but a needed check could not be made
	ExitRefused      = 5   // a safety precondition does not hold
	ExitUnfinished   = 6   // a repair started and did not reach its goal
	ExitInterrupted  = 130 // interrupted
)

// usageError is wrong usage, with a hint about correct usage.
type usageError struct {
	msg, hint string
}

// Error returns the message without the hint, which is printed on a separate line.
func (e *usageError) Error() string { return e.msg }

func usagef(hint, format string, args ...any) error {
	return &usageError{msg: fmt.Sprintf(format, args...), hint: hint}
}

// defectError is a defect of the program. It is an ordinary error, so that the command still cleans up and removes
// scratch.
type defectError struct {
	what  any
	stack []byte
}

// Error implements error.
func (e *defectError) Error() string {
	return fmt.Sprintf("this is a defect of etcd-medic, please report it: %v\n%s", e.what, e.stack)
}

// resultError is the exit code of a run that did its job. The result on stdout says why, so nothing more is printed.
type resultError struct{ code int }

// Error returns the exit code for tests and logs; users do not see it.
func (e *resultError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

// result turns an exit code into the return value of a run function.
func result(code int) error {
	if code == ExitDone {
		return nil
	}
	return &resultError{code}
}

// exitCode is the one place that maps errors to exit codes.
func exitCode(err error) int {
	var res *resultError
	var usage *usageError
	var src *evidence.SourceError
	var refused interface{ Refused() bool }
	var undecided interface{ Inconclusive() bool }
	var unfinished *run.UnfinishedError
	var noPlan *plan.MissingError
	switch {
	case err == nil, errors.Is(err, errDown):
		return ExitDone
	case errors.Is(err, context.Canceled):
		return ExitInterrupted
	case errors.As(err, &res):
		return res.code
	case errors.As(err, &usage), errors.As(err, &noPlan):
		return ExitUsage
	case errors.As(err, &refused) && refused.Refused():
		return ExitRefused
	case errors.As(err, &undecided) && undecided.Inconclusive():
		return ExitInconclusive
	case errors.As(err, &unfinished):
		return ExitUnfinished
	case errors.As(err, &src) && !ioFailure(err):
		return ExitUsage
	}
	return ExitError
}

// ioFailure reports whether a source exists but cannot be read, as opposed to a wrong argument.
func ioFailure(err error) bool {
	var pe *fs.PathError
	return errors.Is(err, fs.ErrPermission) || errors.As(err, &pe) && !errors.Is(err, fs.ErrNotExist)
}

// hintOf returns what to do about an error, "" if there is no hint.
func hintOf(err error) string {
	var usage *usageError
	if errors.As(err, &usage) {
		return usage.hint
	}
	var refused *refusal.Error
	if errors.As(err, &refused) {
		return refused.Advice()
	}
	var unfinished *run.UnfinishedError
	if errors.As(err, &unfinished) {
		return unfinished.Hint
	}
	var noPlan *plan.MissingError
	if errors.As(err, &noPlan) {
		return "name the file that etcd-medic repair plan -o wrote"
	}
	var tooMuch *memoryError
	if errors.As(err, &tooMuch) {
		return memoryHint
	}
	var src *evidence.SourceError
	var path *fs.PathError
	switch {
	case errors.Is(err, fs.ErrPermission) && errors.As(err, &path) && path.Op == "mkdir": // sources are only read
		return "name an output in a folder that this user may write to"
	case errors.Is(err, fs.ErrPermission):
		return "copy the data dir to a place this user may read; the tool never changes it"
	case errors.As(err, &src):
		return cmp.Or(src.Hint, "see etcd-medic help sources")
	}
	return ""
}

// printError writes an error and its hint to stderr. It does not repeat a result that was already printed.
func (s *Streams) printError(err error) {
	var res *resultError
	switch {
	case err == nil || errors.As(err, &res) || errors.Is(err, errDown):
		return
	case errors.Is(err, context.Canceled):
		s.errorf("interrupted")
		return
	}
	for _, e := range flatten(err) {
		s.errorf("%s", e.Error())
	}
	if h := hintOf(err); h != "" {
		s.clearStatus()
		_, _ = fmt.Fprintln(s.Err, s.wrapError("hint: "+strings.ReplaceAll(h, "\n", `\n`)))
	}
}

// flatten splits joined errors, so that each gets a line.
func flatten(err error) []error {
	j, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var out []error
	for _, e := range j.Unwrap() {
		out = append(out, flatten(e)...)
	}
	return out
}

func (s *Streams) errorf(format string, args ...any) {
	s.clearStatus()
	// A line feed in a name must not start a line that looks like one of ours.
	_, _ = fmt.Fprintln(s.Err, s.wrapError("etcd-medic: "+strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", `\n`)))
}

// commandIn finds a command in a hint, which ends with it.
var commandIn = regexp.MustCompile(` (?:etcd-medic|etcdctl|etcdutl) [a-z-]`)

// wrapError wraps text at the words for the terminal at Err. A command in it stays on one line, so that it can be
// pasted.
func (s *Streams) wrapError(text string) string {
	width := s.errWidth
	if width < 20 || utf8.RuneCountInString(text) <= width {
		return text
	}
	command := ""
	if at := commandIn.FindStringIndex(text); at != nil {
		text, command = text[:at[0]], "\n    "+text[at[0]+1:]
	}
	return wrapWords(text, width) + command
}

// wrapWords breaks a text between words, into lines of at most that width if no word is longer.
func wrapWords(text string, width int) string {
	var lines []string
	line := ""
	for _, w := range strings.Fields(text) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(w) > width {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimPrefix(line+" "+w, " ")
	}
	return strings.Join(append(lines, line), "\n")
}
