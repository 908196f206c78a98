package render

import (
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumpdb/kube"
)

// TestObjectCanNotForgeRows holds that no value makes a line that looks like one of a row, or moves the cursor.
func TestObjectCanNotForgeRows(t *testing.T) {
	value := []byte("{\"kind\":\"A\",\"apiVersion\":\"v1\",\"a\":\"x\\n9.0 " +
		"key=1\\u001b[2J\\r\\u0085y\\u2028z\\u202e\",\"b\":\"\u0085\u2028\u009b\u202e\"}")
	obj, ok := kube.Decode(value, kube.Options{})
	if !ok || obj.Err != nil {
		t.Fatal(ok, obj.Err)
	}
	row := KeyRow{Revision: &dumpdb.Revision{KV: dumpdb.KeyValue{Key: []byte("k"), Value: value}}, Kube: &obj,
		Object: true}
	text := string(row.Line(nil, Options{Values: true}))
	for i, line := range strings.Split(text, "\n") {
		if i > 0 && !strings.HasPrefix(line, "    ") {
			t.Errorf("line %d is not indented: %q", i, line)
		}
	}
	if i := strings.IndexAny(text, "\x1b\r\u0085\u2028\u009b\u202e"); i >= 0 {
		t.Errorf("control characters get through: %q", text[i:])
	}
}

// TestDamagedSecretHidden holds that a Secret which does not decode, and so cannot be redacted, is not shown by Values
// alone.
func TestDamagedSecretHidden(t *testing.T) {
	for _, value := range []string{"k8s\x00\n\x0c\n\x02v1\x12\x06Secret\x12\x09\x0a\x7fhunter2",
		"k8s:enc:a:v1:k:hunter2", "k8s\x00hunter2"} {
		obj, ok := kube.Decode([]byte(value), kube.Options{})
		if !ok || obj.Err == nil {
			t.Fatalf("%q: %v %v", value, ok, obj.Err)
		}
		row := KeyRow{Revision: &dumpdb.Revision{KV: dumpdb.KeyValue{Key: []byte("k"), Value: []byte(value)}},
			Kube: &obj, Object: true}
		for _, f := range Formats() {
			if got := write(t, Format(f), Options{Values: true}, row); strings.Contains(got, "hunter2") {
				t.Errorf("%s: %s", f, got)
			}
			if got := write(t, Format(f), Options{Values: true, Secrets: true}, row); f == "table" &&
				!strings.Contains(got, "hunter2") {
				t.Errorf("%s: not shown when asked for: %s", f, got)
			}
		}
	}
}
