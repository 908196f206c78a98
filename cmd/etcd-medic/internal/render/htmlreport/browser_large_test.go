//go:build browser

package htmlreport

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestBrowserLargePair: the page of two databases of 1.4 GB, in which 100,000 keys differ, is open after 3 seconds and
// has less than 20 MB. What is said of time in TestBrowserManyRows counts here, too.
func TestBrowserLargePair(t *testing.T) {
	const size = 14_000 // bytes of a value
	var keys [][]byte
	for i := range 100_000 {
		keys = append(keys, manyKey(i))
	}
	var sources []string
	for _, name := range []string{"one", "two"} {
		source := databaseOf(t, name, keys, func(int) []byte { return bytes.Repeat([]byte(name), size/len(name)) })
		fi, err := os.Stat(strings.TrimPrefix(source, name+"="))
		if err != nil || fi.Size() < 1_400_000_000 {
			t.Fatalf("%v, %v", fi, err)
		}
		sources = append(sources, source)
	}
	d := collect(t, sources...)
	if n := d.Differences[0].Differ; n != 100_000 {
		t.Fatalf("%d rows differ", n)
	}
	file, html := page(t, d)
	if len(html) > 20<<20 {
		t.Errorf("the page has %d bytes", len(html))
	}
	b := openFile(t, file, 1440, 300, false)
	var took float64
	b.run(chromedp.Evaluate(`performance.getEntriesByType("navigation")[0].domComplete`, &took))
	opened, busy := b.cpu(), slowness(b)
	t.Logf("%.1f MB, open after %.0f ms, %.0f ms of CPU; the machine is %.1f times as slow as a quiet one",
		float64(len(html))/1e6, took, opened, busy)
	if took > 3000*busy || opened > 3000 {
		t.Errorf("open after %.0f ms, %.0f ms of CPU", took, opened)
	}
	b.quiet()
}
