package evidence

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// statusOf says of itself in each answer that one more entry is applied, and fails where an answer is 0.
type statusOf struct {
	clientv3.Maintenance
	asked   int
	applied []uint64
}

func (s *statusOf) Status(context.Context, string) (*clientv3.StatusResponse, error) {
	at := s.applied[min(s.asked, len(s.applied)-1)]
	if s.asked++; at == 0 {
		return nil, errors.New("no answer")
	}
	return said(at), nil
}

// said is what a member says that has applied so many entries.
func said(applied uint64) *clientv3.StatusResponse {
	return &clientv3.StatusResponse{Header: &pb.ResponseHeader{MemberId: 7, ClusterId: 9}, RaftAppliedIndex: applied,
		RaftIndex: applied + 5, Version: "3.6.0"}
}

// TestLevel: a member is asked until it has applied an index, and not at all if it has. An answer that fails says
// nothing, and a member that does not come to it soon is not waited for.
func TestLevel(t *testing.T) {
	t.Parallel()
	cli, err := clientv3.New(clientv3.Config{Endpoints: []string{"http://127.0.0.1:1"}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cli.Close() }()
	for name, c := range map[string]struct {
		at, index uint64
		answers   []uint64
		asked     int
	}{
		"it has applied it":          {60, 60, nil, 0},
		"it has applied more":        {61, 60, nil, 0},
		"it applies it":              {55, 60, []uint64{58, 60, 61}, 2},
		"it applies more":            {59, 60, []uint64{62, 63}, 1},
		"it does not answer at once": {55, 60, []uint64{0, 0, 60, 61}, 3},
	} {
		s := &statusOf{applied: c.answers}
		cli.Maintenance = s
		m := &stream{cli: cli, status: said(c.at)}
		begin := time.Now()
		m.level(t.Context(), c.index)
		if took := time.Since(begin); s.asked != c.asked || took > levelTime {
			t.Errorf("%s: asked %d times in %v, want %d times", name, s.asked, took, c.asked)
		}
	}
	s := &statusOf{applied: []uint64{59}}
	cli.Maintenance = s
	m := &stream{cli: cli, status: said(59)}
	if m.level(t.Context(), 60); s.asked < 2 {
		t.Errorf("it never applies it: asked %d times", s.asked)
	}
}

// TestStreamsOfAnEndpoint: an endpoint that is named twice has two streams, and one that was not connected has none.
func TestStreamsOfAnEndpoint(t *testing.T) {
	a, b, c := &stream{endpoint: "http://a"}, &stream{endpoint: "http://b"}, &stream{endpoint: "http://a"}
	s := &Set{streams: []*stream{a, b, c}}
	for i, want := range []*stream{a, c} {
		if got := s.takeStream("http://a"); got != want {
			t.Errorf("stream %d: %+v", i, got)
		}
	}
	if got := s.takeStream("http://b"); got != b {
		t.Errorf("of another endpoint: %+v", got)
	}
	none := s.takeStream("http://a")
	if _, err := none.save(t.Context(), t.TempDir()); err == nil || !strings.Contains(err.Error(), "not connected") {
		t.Errorf("a third one: %v", err)
	}
}

// TestSaidOfItself: what a member said around the moment of its snapshot counts if it was no other run of the server.
func TestSaidOfItself(t *testing.T) {
	for name, c := range map[string]struct {
		before, after      *clientv3.StatusResponse
		applied, committed uint64
	}{
		"both":             {said(50), said(52), 50, 57},
		"the same":         {said(50), said(50), 50, 55},
		"it has restarted": {said(50), said(49), 0, 0},
		"only before":      {said(50), nil, 0, 0},
		"only after":       {nil, said(50), 0, 0},
	} {
		m := &stream{status: said(40), before: c.before, after: c.after}
		if r := m.said(); r.applied != c.applied || r.committed != c.committed || r.member != 7 || r.cluster != 9 ||
			r.server.String() != "3.6.0" {
			t.Errorf("%s: %+v", name, r)
		}
	}
	old := &clientv3.StatusResponse{RaftIndex: 33}
	if at := appliedIndex(old); at != 33 {
		t.Errorf("before 3.4: %d", at)
	}
	if at := appliedIndex(said(40)); at != 40 {
		t.Errorf("since 3.4: %d", at)
	}
}

// TestSavedStream: a snapshot becomes a new file with the name of its host, and what breaks off is an error.
func TestSavedStream(t *testing.T) {
	dir := t.TempDir()
	content := bytes.Repeat([]byte("page"), 100)
	m := &stream{host: "[::1]:2379", endpoint: "http://[::1]:2379", status: said(1),
		body: io.NopCloser(bytes.NewReader(content))}
	path, err := m.save(t.Context(), dir)
	if err != nil || path != filepath.Join(dir, "--1-2379.db") {
		t.Fatalf("%s, %v", path, err)
	}
	if b, err := os.ReadFile(path); err != nil || !bytes.Equal(b, content) {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	if _, err := m.save(t.Context(), dir); !errors.Is(err, os.ErrExist) {
		t.Errorf("a second time: %v", err)
	}
	m.host, m.body = "h:1", io.NopCloser(io.MultiReader(bytes.NewReader(content), brokenReader{}))
	if path, err := m.save(t.Context(), dir); path != "" || !errors.Is(err, io.ErrUnexpectedEOF) ||
		!strings.Contains(err.Error(), m.endpoint) {
		t.Errorf("broken off: %q, %v", path, err)
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
