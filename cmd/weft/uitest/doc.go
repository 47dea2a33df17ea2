// Package uitest tests weft ui in a real browser: headless Chromium, driven by its DevTools
// protocol (chromedp), on a lab with real transfers. It is a module of its own, so that weft
// needs no browser's protocol.
//
// It skips without root, chromium or iperf3. WEFT_ARTIFACTS names a directory for the
// screenshots; WEFT_BINARY a weft that is built already.
package uitest
