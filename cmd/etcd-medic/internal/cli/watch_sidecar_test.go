package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// TestWatchByEnvironment: every flag of watch can be set by its variable, as manifests do.
func TestWatchByEnvironment(t *testing.T) {
	values := map[string]string{"duration": "90s", "bool": "true",
		"stringSlice": "http://10.0.0.1:2379,http://10.0.0.2:2379"}
	env := map[string]string{}
	s := &Streams{Out: io.Discard, Err: io.Discard, Getenv: func(n string) string { return env[n] }}
	cmd, _, err := newRoot(s).Find([]string{"watch"})
	if err != nil {
		t.Fatal(err)
	}
	flags := 0
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		v := values[f.Value.Type()]
		switch {
		case f.Name == "write-out":
			v = "json"
		case f.Name == "log-format":
			v = "json"
		case v == "":
			v = "/a/value"
		}
		env[envName(f.Name)] = v
		flags++
	})
	if err := setFromEnv(cmd, s); err != nil {
		t.Fatal(err)
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if want := env[envName(f.Name)]; f.Name != "help" && (!f.Changed ||
			!strings.Contains(f.Value.String(), strings.TrimSuffix(want, "s"))) && f.Value.Type() != "duration" {
			t.Errorf("%s=%s: --%s is %q", envName(f.Name), want, f.Name, f.Value)
		} else if f.Value.Type() == "duration" && f.Value.String() != "1m30s" {
			t.Errorf("%s=%s: --%s is %q", envName(f.Name), want, f.Name, f.Value)
		}
	})
	if flags < 17 {
		t.Errorf("watch has %d flags", flags)
	}
}

// silent is the URL of a server that takes connections and never answers.
func silent(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return "http://" + l.Addr().String()
}

// TestWatchAsASidecar: configured by variables alone, watch logs JSON, serves its pages, is not healthy before the
// first round, and ends without an error within a second, although members owe it answers and a scraper holds a
// connection.
func TestWatchAsASidecar(t *testing.T) {
	env := map[string]string{"ETCD_MEDIC_ENDPOINTS": silent(t) + "," + silent(t), "ETCD_MEDIC_LISTEN": "127.0.0.1:0",
		"ETCD_MEDIC_LOG_FORMAT": "json", "ETCD_MEDIC_ASK_TIMEOUT": "1m", "ETCD_MEDIC_INTERVAL": "1s"}
	logs, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	ctx, term := context.WithCancel(t.Context())
	defer term()
	ended := make(chan int, 1)
	go func() {
		ended <- Main(ctx, []string{"watch"}, &Streams{Out: io.Discard, Err: w,
			Getenv: func(n string) string { return env[n] }})
		_ = w.Close()
	}()
	lines := bufio.NewScanner(logs)
	next := func() (line struct{ Level, Msg, Address string }) {
		t.Helper()
		if !lines.Scan() {
			t.Fatalf("the log ends: %v", lines.Err())
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil || line.Level == "" || line.Msg == "" {
			t.Fatalf("%q is no line of a structured log: %v", lines.Text(), err)
		}
		return line
	}
	at := next()
	if at.Msg != "listening" || at.Address == "" {
		t.Fatalf("%+v", at)
	}
	for page, want := range map[string]int{"/healthz": http.StatusServiceUnavailable, "/metrics": http.StatusOK,
		"/divergence": http.StatusOK, "/other": http.StatusNotFound} {
		r, err := http.Get("http://" + at.Address + page)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(r.Body)
		_ = r.Body.Close()
		if r.StatusCode != want || page == "/divergence" && string(bytes.TrimSpace(b)) != "[]" {
			t.Errorf("%s: %s: %s", page, r.Status, b)
		}
	}
	scraper, err := net.Dial("tcp", at.Address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = scraper.Close() }()
	if l := next(); l.Msg != "watching" {
		t.Errorf("%+v", l)
	}
	begun := time.Now()
	term()
	if code := <-ended; code != ExitDone {
		t.Errorf("ended with code %d", code)
	}
	if took := time.Since(begun); took > time.Second {
		t.Errorf("ended after %v", took)
	}
	last := ""
	for lines.Scan() {
		last = lines.Text()
	}
	if !strings.Contains(last, `"msg":"ended"`) {
		t.Errorf("the last line of the log is %q", last)
	}
}
