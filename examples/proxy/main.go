// Proxy puts a web server behind a weft host: a reverse proxy whose clients come
// in, and whose backend is asked, over every path of the fabric. Neither of
// them need be a weft host.
//
//	weft lab exec h0.0.2 -- proxy -address 10.0.0.130 -backend http://10.2.0.2:80
//	weft lab exec h1.0.2 -- curl http://10.0.0.130:8080/
package main

import (
	"context"
	"flag"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/signal"
	"syscall"

	"weft/examples/start"
	"weft/stack"
)

func main() {
	log.SetFlags(0)
	flags := start.NewFlags("presto")
	bind := flag.String("listen", ":8080", "`host:port` to listen on")
	backend := flag.String("backend", "", "the `URL` of the server that is asked")
	flag.Parse()

	to, err := url.Parse(*backend)
	if err != nil || to.Host == "" {
		log.Fatalf("-backend %q: an URL such as http://10.2.0.2:80 is wanted", *backend)
	}
	host, _, err := flags.Host()
	if err != nil {
		log.Fatal(err)
	}
	err = serve(host, *bind, to)
	host.Close()
	if err != nil {
		log.Fatal(err)
	}
}

func serve(host *stack.Host, bind string, backend *url.URL) error {
	l, err := host.Listen("tcp", bind)
	if err != nil {
		return err
	}
	log.Printf("http://%v asks %v", l.Addr(), backend)
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(backend)
			r.SetXForwarded()
		},
		Transport: &http.Transport{DialContext: host.DialContext, MaxIdleConnsPerHost: 64},
	}
	s := http.Server{Handler: proxy}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, func() { s.Close() })
	if err := s.Serve(l); err != http.ErrServerClosed {
		return err
	}
	return nil
}
