# SPDX-License-Identifier: Apache-2.0
# To be read by scripts that make a folder of their own.

# emptied <folder> <caller's folder>: makes it, or empties it, and prints its whole path. What stands in a folder that is not
# below build/ is somebody's: such a one must be empty. Called in the repository's root.
emptied() {
  local folder=$1
  case $folder in
    /*) ;;
    *) folder=$2/$folder ;;
  esac
  mkdir -p "$folder"
  folder=$(cd "$folder" && pwd)
  case $folder in
    "$PWD"/build/*) rm -rf "$folder" && mkdir "$folder" ;;
    *)
      if [ -n "$(ls -A "$folder")" ]; then
        echo "$folder is not empty: choose another folder, or empty it" >&2
        return 1
      fi
      ;;
  esac
  printf '%s\n' "$folder"
}
