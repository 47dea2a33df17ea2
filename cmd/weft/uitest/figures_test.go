package uitest

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// figure is a text on the page that says a value of a frame.
type figure struct{ Place, Kind, Text string }

// lookUp finds the value at a place of a frame, such as links.3.up.bit_s.
func lookUp(frame any, place string) any {
	for _, key := range strings.Split(place, ".") {
		switch v := frame.(type) {
		case map[string]any:
			frame = v[key]
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 || i >= len(v) {
				return nil
			}
			frame = v[i]
		default:
			return nil
		}
	}
	return frame
}

// written is how the page is to write a value. It is written anew here, from what people expect
// to read.
func written(value any, kind string) string {
	if value == nil {
		return "–"
	}
	if s, ok := value.(string); ok {
		if s == "" {
			return "–"
		}
		return s
	}
	x := value.(float64)
	const thin = "\u202f"
	switch kind {
	case "rate":
		return unit(x, thin, "bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s")
	case "bytes":
		return unit(x, thin, "B", "kB", "MB", "GB")
	case "part":
		if x == 0 {
			return "0" + thin + "%"
		}
		return three(x*100) + thin + "%"
	case "ms":
		if x == 0 {
			return "–"
		}
		return three(x) + thin + "ms"
	case "count":
		text := strconv.FormatFloat(x, 'f', 0, 64)
		for i := len(text) - 3; i > 0; i -= 3 {
			text = text[:i] + "," + text[i:]
		}
		return text
	}
	return fmt.Sprint(x)
}

// three writes a number with three significant digits, as far as two decimals go.
func three(x float64) string {
	decimals := 2
	if x >= 10 {
		decimals = 1
	}
	if x >= 100 {
		decimals = 0
	}
	scale := math.Pow(10, float64(decimals))
	return strconv.FormatFloat(math.Floor(x*scale+0.5)/scale, 'f', decimals, 64)
}

func unit(x float64, space string, units ...string) string {
	if x == 0 {
		return "0"
	}
	i := 0
	for x >= 999.5 && i < len(units)-1 {
		x /= 1000
		i++
	}
	if i == 0 {
		return strconv.FormatFloat(math.Floor(x+0.5), 'f', 0, 64) + space + units[i]
	}
	return three(x) + space + units[i]
}

// compare returns the figures that are not as a frame has them.
func compare(frame []byte, figures []figure) (wrong []string, err error) {
	var all any
	if err := json.Unmarshal(frame, &all); err != nil {
		return nil, err
	}
	for _, f := range figures {
		if want := written(lookUp(all, f.Place), f.Kind); f.Text != want {
			wrong = append(wrong, fmt.Sprintf("%s reads %q, the JSON says %q", f.Place, f.Text, want))
		}
	}
	return wrong, nil
}

// titleRate finds the rate of a direction in what the page says of a link when one points at it.
func titleRate(title, direction string) string {
	m := regexp.MustCompile(direction + ` ([^,;]+)`).FindStringSubmatch(title)
	if m == nil {
		return ""
	}
	return m[1]
}
