package refusal_test

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/etcd-medic/etcd-medic/refusal"
)

// TestError: a refusal says so once, keeps the error that led to it, and shows commands that it is a refusal.
func TestError(t *testing.T) {
	err := refusal.New("bring it", "%s: %w", "x", fs.ErrNotExist)
	var r *refusal.Error
	if !errors.As(err, &r) || !r.Refused() || !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("%v is not a refusal, or hides the error that led to it", err)
	}
	if err.Error() != "refused: x: file does not exist" {
		t.Error(err)
	}
	if err := refusal.New("", "%w", errors.Join(fs.ErrExist, fs.ErrClosed)); err.Error() !=
		"refused: file already exists; file already closed" {
		t.Error(err)
	}
	if err := (&refusal.Error{What: "a start", Reason: "no quorum"}); err.Error() != "a start refused: no quorum" {
		t.Error(err)
	}
}

func TestAdvice(t *testing.T) {
	for want, e := range map[string]refusal.Error{
		"": {}, "bring it": {Hint: "bring it"}, "accept it with --force": {Flag: "force"},
		"bring it, or accept it with --force": {Hint: "bring it", Flag: "force"},
	} {
		if got := e.Advice(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
