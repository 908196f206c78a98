package bundle

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// FuzzTake reads any bytes as the files of a bundle: never a panic, and what is taken can be shown again.
func FuzzTake(f *testing.F) {
	f.Add([]byte(`{"format":1,"tool":{"name":"etcd-medic"},"sources":["a"]}`))
	f.Add([]byte(`{"report":{"schemaVersion":1,"sources":[{"error":"x"}],"verdict":{"healthy":null}}}`))
	f.Add([]byte(`{"report":[[[]]]}`))
	f.Add([]byte("\x28\xb5\x2f\xfd"))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, name := range []string{infoName, textName, fullName, jsonName, "other"} {
			x := &Bundle{}
			if x.keep(name, bytes.NewReader(b)) != nil || name != jsonName || x.Diagnosis == nil {
				continue
			}
			if _, err := x.Indented(); err != nil {
				t.Errorf("a document that was taken cannot be shown: %v", err)
			}
			_, _ = x.Report() // a document of another shape is an error
		}
		file := filepath.Join(t.TempDir(), "a.tar.zst")
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if x, err := Open(t.Context(), file); x != nil && err != nil {
			t.Errorf("a bundle and an error: %v", err)
		}
	})
}
