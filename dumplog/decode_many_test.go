package dumplog_test

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestManyBadCheckpoints: the error of a request with many malformed parts names one of them, in time linear in its
// size.
func TestManyBadCheckpoints(t *testing.T) {
	parts := bytes.Repeat([]byte{0x0a, 0x01, 0xff}, 200_000) // 1: a message that is cut off
	body := binary.AppendUvarint([]byte{0x5a}, uint64(len(parts)))
	begin := time.Now()
	e := dumplog.Entry{Type: dumplog.EntryNormal, Data: append(body, parts...)}
	_, err := e.Decode()
	if err == nil || len(err.Error()) > 1000 {
		t.Errorf("%.1000v, want one short error", err)
	}
	if took := time.Since(begin); took > 30*time.Second {
		t.Errorf("took %s", took)
	}
}
