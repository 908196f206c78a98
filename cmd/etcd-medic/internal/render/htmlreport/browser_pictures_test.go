//go:build browser

package htmlreport

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// TestScreenshots writes pictures of several incidents for people to look at, in two sizes, light and dark.
func TestScreenshots(t *testing.T) {
	dir := os.Getenv("SCREENSHOTS")
	if dir == "" {
		dir = t.TempDir()
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range shotsOf() {
		d := incident(t, name)
		for _, s := range []struct {
			tag           string
			width, height int
			dark          bool
		}{{"wide-light", 1440, 1000, false}, {"wide-dark", 1440, 1000, true}, {"small-light", 600, 900, false},
			{"small-dark", 600, 900, true}} {
			b := open(t, d, s.width, s.height, s.dark)
			for _, at := range []string{"verdict", "members", "timeline", "curves", "differences", "membership",
				"files", "findings"} {
				if b.eval(`document.getElementById("`+at+`") !== null`) != true {
					continue
				}
				var png []byte
				b.eval(`document.getElementById("` + at + `").scrollIntoView()`)
				b.run(chromedp.Sleep(200*time.Millisecond), chromedp.CaptureScreenshot(&png))
				if len(png) < 5000 {
					t.Errorf("%s %s %s: an empty picture", name, s.tag, at)
				}
				if err := os.WriteFile(filepath.Join(dir, name+"-"+s.tag+"-"+at+".png"), png, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			b.quiet()
		}
	}
}

// shotsOf are the incidents to look at.
func shotsOf() []string {
	if s := os.Getenv("SHOTS"); s != "" {
		return strings.Split(s, ",")
	}
	return []string{"a-auth-revision-replay", "e-torn-wal-tail", "f-bbolt-page-corruption",
		"h-misconfigured-member-add", "n-silent-kv-divergence", "m-healthy-3.6"}
}

// TestPicturesForDocs takes the two pictures that the documents show.
func TestPicturesForDocs(t *testing.T) {
	dir := os.Getenv("PICTURES")
	if dir == "" {
		dir = t.TempDir()
	}
	d := incident(t, "a-auth-revision-replay")
	for _, p := range []struct {
		id   string
		dark bool
	}{{"timeline", false}, {"curves", true}} {
		b := open(t, d, 1200, 900, p.dark)
		// Nothing else stands on the page: a picture is wider than the window by its scroll bar, and what is above
		// would wrap differently.
		b.eval(`for (const e of document.querySelectorAll("nav, footer, section:not(#` + p.id +
			`)")) e.hidden = true; window.dispatchEvent(new Event("resize")); window.scrollTo(0, 0)`)
		var box []float64
		b.run(chromedp.Sleep(300*time.Millisecond),
			chromedp.Evaluate(`(() => { const r = document.getElementById("`+p.id+
				`").getBoundingClientRect(); return [r.left, r.top, r.width, r.height]; })()`, &box))
		var png []byte
		b.run(picture(box, &png))
		save(t, filepath.Join(dir, "report-"+p.id+".png"), png)
	}
}

func save(t *testing.T, file string, png []byte) {
	t.Helper()
	if len(png) < 5000 {
		t.Errorf("%s: an empty picture", file)
	}
	if err := os.WriteFile(file, png, 0o600); err != nil {
		t.Fatal(err)
	}
}
