//go:build browser

package htmlreport

import (
	"context"

	"github.com/chromedp/cdproto/emulation"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// emulate makes the reader's system light or dark.
func emulate(scheme string) chromedp.Action {
	return chromedp.ActionFunc(func(ctx context.Context) error {
		return emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme",
			Value: scheme}}).Do(ctx)
	})
}

// noScripts switches JavaScript off for pages that are loaded from now on.
func noScripts() chromedp.Action {
	return chromedp.ActionFunc(func(ctx context.Context) error { return emulation.SetScriptExecutionDisabled(true).Do(ctx) })
}

// picture takes a picture of a part of the page, given as left, top, width and height.
func picture(box []float64, png *[]byte) chromedp.Action {
	return chromedp.ActionFunc(func(ctx context.Context) (err error) {
		clip := &cdppage.Viewport{X: box[0], Y: box[1], Width: box[2], Height: box[3], Scale: 1}
		*png, err = cdppage.CaptureScreenshot().WithClip(clip).WithCaptureBeyondViewport(true).Do(ctx)
		return err
	})
}

// awaited makes an evaluation wait for its promise.
func awaited(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }
