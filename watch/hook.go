package watch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/etcd-medic/etcd-medic/internal/hooks"
)

// maxSaid bounds what is kept of a hook's output.
const maxSaid = 4096

// runHook runs the program. It passes the event in the environment and on standard input, without a shell. At its
// timeout the program is ended with all processes that it started.
func (w *Watcher) runHook(ctx context.Context, e *Event, dir string) error {
	timed, cancel := context.WithTimeout(ctx, w.o.HookTimeout)
	defer cancel()
	b, err := json.Marshal(e)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(timed, w.o.Hook)
	hooks.OwnGroup(cmd)
	cmd.WaitDelay = time.Second
	state := "diverged"
	if e.Over {
		state = "over"
	}
	cmd.Env = append(hooks.Environ(), "ETCD_MEDIC_EVENT="+state, "ETCD_MEDIC_KIND="+string(e.Kind),
		"ETCD_MEDIC_MEMBERS="+strings.Join(e.Members, ","),
		"ETCD_MEDIC_DETAIL="+e.Detail, "ETCD_MEDIC_EVIDENCE="+dir)
	cmd.Stdin = strings.NewReader(string(b) + "\n")
	said := &firstBytes{}
	cmd.Stdout, cmd.Stderr = said, said
	err = cmd.Run()
	if len(said.b) > 0 {
		w.o.Log.Info("hook said", "output", string(said.b))
	}
	switch {
	case errors.Is(err, exec.ErrWaitDelay) && timed.Err() == nil:
		return nil // it succeeded, and what it left at work still has its output open
	case err != nil && ctx.Err() == nil && timed.Err() != nil:
		return fmt.Errorf("it was still at work after %v and was ended", w.o.HookTimeout)
	}
	return err
}

// firstBytes keeps the beginning of what a hook prints.
type firstBytes struct{ b []byte }

// Write keeps what there is room for.
func (f *firstBytes) Write(b []byte) (int, error) {
	f.b = append(f.b, b[:min(len(b), maxSaid-len(f.b))]...)
	return len(b), nil
}
