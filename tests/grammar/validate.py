# SPDX-License-Identifier: Apache-2.0
"""validate.py DRAW_SCHEMAS COUNT [SEED]: judges outputs by python3-jsonschema. Says SKIPPED where that is missing."""
import json
import subprocess
import sys

try:
    from jsonschema import Draft202012Validator, FormatChecker
except ImportError:
    print("SKIPPED: needs python3-jsonschema")
    sys.exit(0)

judged = wrong = 0
with subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, encoding="utf-8") as drawn:
    for line in drawn.stdout:
        case = json.loads(line)
        validator = Draft202012Validator(case["schema"], format_checker=FormatChecker())
        for text in case["outputs"]:
            judged += 1
            try:
                problem = next((error.message for error in validator.iter_errors(json.loads(text))), None)
            except ValueError as error:
                problem = f"no JSON: {error}"
            if problem is not None:
                wrong += 1
                print(f"WRONG: {text!r} of {json.dumps(case['schema'])}: {problem}")
print(f"{judged} outputs judged, {wrong} of them wrong")
sys.exit(drawn.returncode or wrong > 0 or judged < int(sys.argv[2]))
