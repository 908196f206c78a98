package evidence

import (
	"context"
	"errors"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestAccessConfig: what a client's configuration takes from the flags.
func TestAccessConfig(t *testing.T) {
	secure, plain := &url.URL{Scheme: "https", Host: "h:1"}, &url.URL{Scheme: "http", Host: "h:1"}
	text := filepath.Join(tree(t, "text"), "text")
	for name, c := range map[string]struct {
		a      Access
		u      *url.URL
		broken string
	}{
		"plain":              {Access{}, plain, ""},
		"secure":             {Access{}, secure, ""},
		"no password":        {Access{User: "root"}, plain, "--user needs NAME:PASSWORD"},
		"an empty password":  {Access{User: "root:"}, plain, ""},
		"no such CA":         {Access{CACert: text + "-"}, secure, "no such file"},
		"a CA that is text":  {Access{CACert: text}, secure, "does not contain a PEM certificate"},
		"a plain CA":         {Access{CACert: text}, plain, ""},
		"a key that is text": {Access{Cert: text, Key: text}, secure, "PEM"},
	} {
		cfg, err := c.a.config(c.u)
		if (err != nil) != (c.broken != "") || err != nil && !strings.Contains(err.Error(), c.broken) {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil && ((cfg.TLS != nil) != (c.u == secure) || cfg.DialTimeout != 5*time.Second ||
			cfg.DialKeepAliveTime == 0 || cfg.DialKeepAliveTimeout == 0 || // a paused server would hold a stream
			len(cfg.DialOptions) > 0 || cfg.Endpoints[0] != c.u.String()) {
			t.Errorf("%s: %+v", name, cfg)
		}
	}
	a := Access{User: "root:a:b", DialTimeout: time.Second, Window: 1 << 20, Connected: func() {}}
	cfg, err := a.config(plain)
	if err != nil || cfg.Username != "root" || cfg.Password != "a:b" || cfg.DialTimeout != time.Second ||
		len(cfg.DialOptions) != 5 {
		t.Errorf("%+v, %v", cfg, err)
	}
}

// TestNotEndpoints: an address without a host or scheme is refused before anything is sent.
func TestNotEndpoints(t *testing.T) {
	for _, e := range []string{"h:2379", "http://", "ftp://h:1", "http://h:1%zz", "/d"} {
		if _, err := (&Access{}).Dial(t.Context(), []string{e}); err == nil {
			t.Errorf("%s: dialed", e)
		}
		if _, err := (&Access{}).Get(t.Context(), e, "/x", 9); err == nil {
			t.Errorf("%s: got a page", e)
		}
	}
	for where, want := range map[string]bool{"http://h:1": true, "https://h:1": true, "/d": false, "h:1": false} {
		if got := IsEndpoint(where); got != want {
			t.Errorf("%s: %t", where, got)
		}
	}
}

// TestReasonsOfErrors: an error that says what is wrong stays as it is; of one that says only that the time is over,
// the reason is added.
func TestReasonsOfErrors(t *testing.T) {
	a := &Access{DialTimeout: 200 * time.Millisecond}
	own := errors.New("no user")
	err := a.Because(t.Context(), []string{"http://127.0.0.1:1"}, own)
	if !errors.Is(err, own) || err.Error() != "no user" {
		t.Errorf("%v", err)
	}
	err = a.Because(t.Context(), []string{"http://127.0.0.1:1"}, context.DeadlineExceeded)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "refused") {
		t.Errorf("%v", err)
	}
	err = a.Because(t.Context(), []string{"http://h:1%zz"}, context.DeadlineExceeded)
	if err == nil || err.Error() != context.DeadlineExceeded.Error() {
		t.Errorf("%v", err)
	}
	broken := &Access{User: "x"}
	if err := broken.Because(t.Context(), []string{"http://127.0.0.1:1"}, context.DeadlineExceeded); err == nil ||
		!strings.Contains(err.Error(), "--user") {
		t.Errorf("%v", err)
	}
}

// TestAnsweredAs: only a running member says which member it is.
func TestAnsweredAs(t *testing.T) {
	m := &Member{Source: &Source{}}
	if id, cluster := m.AnsweredAs(); id != 0 || cluster != 0 {
		t.Errorf("%s of %s", id, cluster)
	}
	m.Source.running = &running{member: 5, cluster: 7}
	if id, cluster := m.AnsweredAs(); id != dumplog.ID(5) || cluster != dumplog.ID(7) {
		t.Errorf("%s of %s", id, cluster)
	}
}
