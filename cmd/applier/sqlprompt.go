package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"applier/merger/sqlparse"

	"golang.org/x/term"
)

// interruptible hands the keys of a terminal on. Ctrl-C, which the line editor takes
// for the end of the input, becomes "drop this line".
type interruptible struct {
	io.Reader
	hit     bool
	pending []byte
}

func (r *interruptible) Read(p []byte) (int, error) {
	if len(r.pending) == 0 {
		buf := make([]byte, len(p))
		n, err := r.Reader.Read(buf)
		if err != nil {
			return 0, err
		}
		r.hit = r.hit || bytes.IndexByte(buf[:n], 3) >= 0
		r.pending = bytes.ReplaceAll(buf[:n], []byte{3}, []byte("\x05\x15\r")) // to the end, kill the line, enter
	}
	n := copy(p, r.pending)
	r.pending = r.pending[n:]
	return n, nil
}

// prompt reads statements from a terminal until its end. A statement may take many
// lines; it ends with a semicolon. Ctrl-C drops what is typed or cancels what runs.
func (r *sqlRunner) prompt(ctx context.Context) error {
	keys := &interruptible{Reader: os.Stdin}
	t := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{keys, os.Stdout}, "")
	history := loadHistory(t)
	fmt.Println("Statements end with a semicolon; Ctrl-D or exit leaves. SHOW TABLES lists the tables.")
	text := ""
	for {
		t.SetPrompt(r.session.Database() + "> ")
		if text != "" {
			t.SetPrompt(strings.Repeat(" ", len(r.session.Database())-1) + "-> ")
		}
		keys.hit = false
		line, err := readLine(t)
		switch {
		case errors.Is(err, io.EOF):
			fmt.Println()
			return nil
		case err != nil && !errors.Is(err, term.ErrPasteIndicator):
			return err
		case keys.hit:
			text = ""
			continue
		case text == "" && (strings.EqualFold(strings.TrimRight(strings.TrimSpace(line), ";"), "exit") || strings.EqualFold(strings.TrimSpace(line), "quit")):
			return nil
		}
		if text += line + "\n"; strings.TrimSpace(text) == "" {
			text = ""
			continue
		}
		pieces := sqlparse.Split(text)
		if len(pieces) > 0 && !pieces[len(pieces)-1].Terminated {
			continue
		}
		history.add(text, pieces)
		for _, p := range pieces {
			if r.interactive(ctx, text, p) != nil {
				break
			}
		}
		text = ""
	}
}

// readLine reads a line with the terminal in raw mode, which it is in only then.
func readLine(t *term.Terminal) (string, error) {
	fd := int(os.Stdin.Fd())
	state, err := term.MakeRaw(fd)
	if err != nil {
		return "", err
	}
	defer func() { _ = term.Restore(fd, state) }()
	if w, h, err := term.GetSize(fd); err == nil && w > 0 && h > 0 {
		_ = t.SetSize(w, h)
	}
	return t.ReadLine()
}

// interactive runs a statement that Ctrl-C cancels.
func (r *sqlRunner) interactive(ctx context.Context, text string, p sqlparse.Piece) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	return r.statement(ctx, text, p)
}

// historyFile keeps what was typed, one line a statement.
type historyFile struct{ path string }

// historyLines is how much of it is read.
const historyLines = 500

// loadHistory gives the terminal the statements of earlier sessions; without a home
// there are none.
func loadHistory(t *term.Terminal) *historyFile {
	home, err := os.UserHomeDir()
	if err != nil {
		return &historyFile{}
	}
	h := &historyFile{filepath.Join(home, ".applier_sql_history")}
	b, err := os.ReadFile(h.path)
	if err != nil {
		return h
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	for _, l := range lines[max(0, len(lines)-historyLines):] {
		t.History.Add(l)
	}
	return h
}

// add keeps the statements of a text; failing to is no reason to disturb anybody.
func (h *historyFile) add(text string, pieces []sqlparse.Piece) {
	if h.path == "" {
		return
	}
	f, err := os.OpenFile(h.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	_, _ = fmt.Fprintln(f, historyLine(text, pieces))
	_ = f.Close()
}

// historyLine is a text of statements as one line that does the same: a comment to the end of
// its line must not take in what follows, nor may blanks in texts go. What does not
// parse is kept as far as a line can.
func historyLine(text string, pieces []sqlparse.Piece) string {
	var list []string
	for _, p := range pieces {
		stmt, err := p.Parse()
		if err != nil {
			return strings.Join(strings.Fields(text), " ")
		}
		line := p.Text()
		if strings.ContainsAny(line, "\n\r") {
			line = sqlparse.Format(stmt)
		}
		list = append(list, line+";")
	}
	return strings.ReplaceAll(strings.Join(list, " "), "\n", " ")
}
