package cli

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/repair/run"
)

// TestLogin: where the password comes from, first come first served, and that it is never shown.
func TestLogin(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("from file\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ user, file, env, typed, want string }{
		{user: "root", file: file, env: "from env", want: "from file"},
		{user: "root:from:flag", file: file, want: "from file"},
		{user: "root:from:flag", env: "from env", want: "from:flag"},
		{user: "root", env: "from env", typed: "typed\n", want: "from env"},
		{user: "root", typed: "typed\n", want: "typed"},
		{user: "", file: file, want: ""},
		{user: "root", want: "missing"},
		{user: "root", typed: "\n", want: "missing"},
		{user: "root", file: file + "x", want: "no such file"},
	} {
		var stderr bytes.Buffer
		env := map[string]string{"ETCD_MEDIC_PASSWORD": tc.env}
		s := &Streams{Err: &stderr, Getenv: func(name string) string { return env[name] }}
		if tc.typed != "" {
			s.In = strings.NewReader(tc.typed)
		}
		o := &repairApplyOptions{live: run.LiveOptions{User: tc.user}, password: tc.file}
		err := o.login(t.Context(), s)
		if err != nil {
			var u *usageError
			if !errors.As(err, &u) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%+v: %v", tc, err)
			}
			continue
		}
		if user, _, _ := strings.Cut(tc.user, ":"); o.live.Password != tc.want || o.live.User != user {
			t.Errorf("%+v: %q, %q", tc, o.live.User, o.live.Password)
		}
		if tc.want != "" && strings.Contains(stderr.String(), tc.want) {
			t.Errorf("the password is shown: %s", &stderr)
		}
	}
}

// TestPromptEnds: an interrupt ends the wait for an answer.
func TestPromptEnds(t *testing.T) {
	in, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := &Streams{In: in, Err: &bytes.Buffer{}, Getenv: os.Getenv}
	if err := s.prompt()(ctx, []string{"do it"}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestPromptAsks: a step is done, and Enter says so; a question is answered, and Enter alone is no.
func TestPromptAsks(t *testing.T) {
	const question, step = "yes to continue, Enter for no: ", "Enter when it is done, no to stop here: "
	for _, tc := range []struct {
		text, typed, asks string
		stopped           bool
	}{
		{"begin?", "\n", question, true}, {"begin?", "yes\n", question, false}, {"begin?", "n\n", question, true},
		{"begin?", "", question, true},
		{"stop node1", "\n", step, false}, {"stop node1", "no\n", step, true}, {"stop node1", "", step, true},
	} {
		var stderr bytes.Buffer
		s := &Streams{In: strings.NewReader(tc.typed), Err: &stderr, Getenv: os.Getenv}
		err := s.prompt()(t.Context(), []string{tc.text})
		if errors.Is(err, run.ErrStopped) != tc.stopped || !tc.stopped && err != nil ||
			!strings.HasPrefix(stderr.String(), tc.text+"\n"+tc.asks) {
			t.Errorf("%q answered %q: %v, %q", tc.text, tc.typed, err, &stderr)
		}
	}
}
