package run

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// TestLockedOut: the password is changed, or auth turned on, while the repair runs. It does not wait for members that
// answer and refuse it. The step has changed nothing, which the way back knows, and a run with the new password
// continues.
func TestLockedOut(t *testing.T) {
	for _, refusal := range []error{rpctypes.ErrAuthFailed, rpctypes.ErrUserEmpty, rpctypes.ErrPermissionDenied} {
		p := fakePlan(t, 3, "node2")
		c := newFake(t, p)
		file := sealed(t, p)
		c.journal(t, file, func(r Record, flushed bool) {
			if flushed && r.State == StateDone && strings.HasSuffix(r.Step, "stop-node2") {
				c.locked = map[string]error{"node1": refusal, "node3": refusal}
			}
		})
		var said []string
		c.r.live.Notice = func(s string) { said = append(said, s) }
		err := c.r.run(t.Context())
		var u *UnfinishedError
		if !errors.As(err, &u) || !errors.Is(err, errLocked) || !strings.Contains(u.Step, "remove-node2") ||
			!strings.Contains(err.Error(), "node1 refuses the login ("+refusal.Error()+")") ||
			!strings.Contains(err.Error(), "this step has changed nothing") || len(said) > 0 {
			t.Errorf("%v; said %q", err, said)
		}
		w, err := Abort(file)
		if err != nil {
			t.Fatal(err)
		}
		if text, final := backOf(w, "node2"); !w.Untouched || final ||
			!strings.HasPrefix(text, "stopped, and still a member") {
			t.Errorf("untouched %v, final %v: %s", w.Untouched, final, text)
		}
		c.locked = nil
		if err := c.r.run(t.Context()); err != nil || len(c.lost) > 0 {
			t.Errorf("%v, lost by %q", err, c.lost)
		}
	}
}

// TestLockedVoterIsNamed: a member other than the best one that refuses the user is not said to be silent.
func TestLockedVoterIsNamed(t *testing.T) {
	c := newFake(t, fakePlan(t, 3, "node2"))
	c.locked = map[string]error{"node3": rpctypes.ErrAuthFailed}
	now := c.r.rule(t.Context(), theOthers, plan.StepStop, c.r.plan.Member("node2"))
	if now.allowed || !strings.Contains(now.waits(), "node3 (it refuses the login: "+rpctypes.ErrAuthFailed.Error()) {
		t.Errorf("%+v: %s", now, now.waits())
	}
}

// TestGaveUpAfterATry: a step that was tried and then waited in vain may have changed something.
func TestGaveUpAfterATry(t *testing.T) {
	if err := ifUntouched(false, errNoMajority); isUntouched(err) || !isUntouched(ifUntouched(true, err)) {
		t.Error(err)
	}
}

// TestExpiredCertificate: a member whose certificate has expired is not only silent.
func TestExpiredCertificate(t *testing.T) {
	s := httptest.NewUnstartedServer(http.NotFoundHandler()) // its certificate is of no CA that is known here
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	f := whereOf(t, 3, []string{"http://a:1"}, map[string]string{"node1": s.URL})
	m := f.r.plan.Member("node1")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := f.logins.secure(); err != nil {
		t.Fatal(err)
	}
	f.logins.tls = &tls.Config{MinVersion: tls.VersionTLS12}
	f.logins.ctx = ctx
	why := f.serves(ctx, m)
	if !badCertificate(why) || !strings.Contains(unheard(m, why).Error(), "certificate") ||
		!strings.Contains(f.r.silence(m, why), "it does not answer at "+s.URL+": ") {
		t.Errorf("%v; %v", why, unheard(m, why))
	}
	if badCertificate(errSilent) || badCertificate(nil) {
		t.Error("every silence is taken for a refused certificate")
	}
}
