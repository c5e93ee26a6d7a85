package cli

import (
	"crypto/tls"
	"net"
	"net/netip"
	"os/user"
	"path"
	"strings"

	"github.com/spf13/cobra"

	"github.com/godelayed/delayed/web"
)

const webLong = `Serve the dashboard: queues, tasks, workers, functions, periodic entries, groups and the audit log,
live, with actions, in a browser. Ctrl-C ends it.

Without tokens it serves this machine alone: it makes a random token, and prints an address that
signs in with it. To serve others, give users tokens, each with a role: viewer looks, operator
also acts on tasks, queues, workers and entries, admin does everything. They are those of --token-file,
each line a name, a role and a secret of at least 16 characters, or those of the profile:
web: {tokens: [{name: ann, role: admin, secret: …}]}. Nobody else may read the file that has them:
chmod 600. Programs use the API with the header "Authorization: Bearer SECRET".

Tokens and cookies must not travel openly: give --tls-cert and --tls-key, or let a proxy in front speak
TLS, and listen where only it gets to. A proxy that does not strip its path needs --base-path. At
addresses of this machine alone, only requests for localhost, 127.0.0.1, ::1, the address of --listen
and the names of --host are answered, so that no page of another site gets in by a name that leads here.`

// webFlags are the flags of the command web.
type webFlags struct {
	listen, tokenFile, cert, key string
	title, basePath              string
	hosts                        []string
	readOnly, hideArguments      bool
}

// webCommand serves the dashboard.
func (a *app) webCommand() *cobra.Command {
	f := webFlags{listen: "127.0.0.1:8090"}
	cmd := &cobra.Command{
		Use: "web", Short: "Serve the dashboard: everything live, with actions, in a browser", Long: webLong,
		Example: "  delayed web\n" +
			"  delayed web --listen :8443 --token-file /etc/delayed/tokens --tls-cert cert.pem --tls-key key.pem\n" +
			"  delayed web --base-path /queues --host ops.example.com --token-file tokens",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if a.json || a.watch != 0 {
				return usagef("web is for browsers: --json and --watch belong to commands such as delayed queues")
			}
			s, err := a.webServer(&f)
			if err != nil {
				return err
			}
			return s.run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.listen, "listen", "l", f.listen, "address to serve")
	flags.StringVar(&f.tokenFile, "token-file", "", "file of tokens, instead of those of the profile")
	flags.StringVar(&f.cert, "tls-cert", "", "file with the server's certificate, and those between it and its root")
	flags.StringVar(&f.key, "tls-key", "", "file with its key")
	flags.StringVar(&f.title, "title", "", "name of the dashboard (default: the profile, or host and database)")
	flags.StringVar(&f.basePath, "base-path", "", "path below which everything is, such as /queues")
	flags.StringSliceVar(&f.hosts, "host", nil, "further name by which a proxy or browser asks for it")
	flags.BoolVar(&f.readOnly, "read-only", false, "change nothing, whatever a user's role")
	flags.BoolVar(&f.hideArguments, "hide-arguments", false,
		"hide arguments, headers, results and errors from viewers")
	return cmd
}

// webServer checks the flags and makes the server. It does not listen yet.
func (a *app) webServer(f *webFlags) (*webServer, error) {
	host, port, err := net.SplitHostPort(f.listen)
	if err != nil {
		return nil, usagef("--listen %s: expected host:port, such as 127.0.0.1:8090: %w", quote(f.listen), err)
	}
	f.basePath = strings.TrimSuffix(f.basePath, "/")
	if f.basePath != "" && (f.basePath[0] != '/' || path.Clean(f.basePath) != f.basePath ||
		strings.ContainsAny(f.basePath, "?#%{} \\")) {
		return nil, usagef("--base-path %s: expected a path such as /queues", quote(f.basePath))
	}
	if (f.cert == "") != (f.key == "") {
		return nil, usagef("expected both --tls-cert and --tls-key, or none of them")
	}
	where, err := a.target(a.Getenv)
	if err != nil {
		return nil, err
	}
	s := &webServer{
		app: a, listen: f.listen, basePath: f.basePath, where: where.shown(), hosts: map[string]bool{},
		own: ownMachine(host),
	}
	if f.cert != "" {
		pair, err := tls.LoadX509KeyPair(f.cert, f.key)
		if err != nil {
			return nil, usagef("--tls-cert, --tls-key: %w", err)
		}
		s.tls = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	}
	tokens, err := where.tokens(f.tokenFile)
	if err != nil {
		return nil, err
	}
	if len(tokens) == 0 {
		if !s.own {
			return nil, usagef("--listen %s is open to other machines: give users tokens by --token-file or the "+
				"profile, or listen at 127.0.0.1:%s; see delayed web --help", f.listen, port)
		}
		tokens, s.secret = randomToken(userName())
	}
	if s.own || len(f.hosts) > 0 {
		for _, name := range append([]string{"localhost", "127.0.0.1", "::1", host}, f.hosts...) {
			s.hosts[strings.ToLower(name)] = true
		}
	}
	if f.title == "" {
		f.title = s.where
	}
	if err := a.connect(); err != nil {
		return nil, err
	}
	s.dashboard, err = web.New(a.rdb, web.Config{
		Tokens: tokens, ReadOnly: f.readOnly, HideArguments: f.hideArguments, Title: f.title, OnError: s.failed,
	})
	if err != nil {
		return nil, misused(err)
	}
	return s, nil
}

// ownMachine reports whether only this machine can connect to a host.
func ownMachine(host string) bool {
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback() || strings.EqualFold(host, "localhost")
}

// userName is who uses this process, for the audit log.
func userName() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return "local"
}
